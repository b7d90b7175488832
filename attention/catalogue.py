"""Every mechanism in one table: what it computes, at what cost, exactly or not, and who proposed it.

python -m attention.catalogue                       # prints the tables of attention/README.md
python -m attention.catalogue attention/README.md   # brings the tables in that file up to date
"""

import sys
from pathlib import Path
from typing import NamedTuple

BEGIN, END = "<!-- begin: python -m attention.catalogue attention/README.md -->", "<!-- end -->"


class Row(NamedTuple):
    """One entry.

    Attributes:
        name: where it is, below `attention`.
        formula: what it computes, in a line.
        cost: in time, to leading order, for T queries and S keys of H features; for a score, per pair.
        paper: authors and year.
        kind: "exact", or "approximate" where it stands in for a softmax over all keys, or "estimate".
    """

    name: str
    formula: str
    cost: str
    paper: str
    kind: str = "exact"


APPROXIMATE, ESTIMATE = "approximate", "estimate"

CATALOGUE: dict[str, tuple[Row, ...]] = {
    "Three stages": (
        Row("attend", "normalize(score(q, k) + bias, mask) v", "T S (H + V)", "Bahdanau 2015, Vaswani 2017"),
        Row("dot_product_attention", "softmax(q k / sqrt(H)) v, quickly", "T S (H + V)", "Vaswani 2017"),
    ),
    "Scores": (
        Row("scores.dot", "q . k", "T S H", "Luong 2015"),
        Row("scores.scaled_dot", "q . k / sqrt(H)", "T S H", "Vaswani 2017"),
        Row("scores.cosine", "q . k / (|q| |k|)", "T S H", "Graves 2014"),
        Row("scores.general", "q W k", "T S H", "Luong 2015"),
        Row("scores.additive", "v . tanh(Wq q + Wk k + b)", "T S A", "Bahdanau 2015"),
        Row("scores.concat", "v . tanh(W [q; k])", "T S A", "Luong 2015"),
        Row("scores.location", "(W q)[s]", "T S H", "Luong 2015"),
        Row("scores.negative_squared_distance", "-|q - k|^2 / sqrt(H)", "T S H", "Tsai 2019, Kim 2021"),
        Row("synthesizer.dense", "(W2 relu(W1 q))[s], keys unread", "T S A", "Tay 2021"),
        Row("synthesizer.random", "R[t, s], queries and keys unread", "T S", "Tay 2021"),
        Row("synthesizer.factorized_random", "(R1 R2^T)[t, s]", "T S R", "Tay 2021"),
    ),
    "Normalisers": (
        Row("normalizers.softmax", "exp(a) / sum exp(a)", "T S", "Bridle 1990"),
        Row("normalizers.relu", "max(a, 0), or over the number of visible keys", "T S", "Wortsman 2023"),
        Row("normalizers.sigmoid", "1 / (1 + exp(-a))", "T S", "Ramapuram 2025"),
        Row("normalizers.identity", "a", "T S", "Schlag 2021"),
        Row("normalizers.sparsemax", "max(a - t, 0) with sum 1", "T S", "Martins 2016"),
        Row(
            "normalizers.entmax",
            "max((alpha - 1) a - t, 0)^(1 / (alpha - 1)) with sum 1",
            "T S",
            "Peters 2019, Correia 2019",
        ),
        Row("normalizers.top_k", "softmax over the k largest", "T S log k", "Zhao 2019"),
        Row("normalizers.hardmax", "1 at the largest", "T S", "Hahn 2020"),
        Row(
            "normalizers.gumbel_softmax",
            "softmax((a + Gumbel noise) / temperature)",
            "T S",
            "Jang 2017, Maddison 2017",
        ),
    ),
    "Masks": (
        Row("masks.padding", "s < length", "S", "Vaswani 2017"),
        Row("masks.causal", "s <= t", "T S", "Vaswani 2017"),
        Row("masks.band", "-left <= s - t <= right", "T S", "Parmar 2018"),
        Row("masks.dilated", "s - t = i d, -left <= i <= right", "T S", "Beltagy 2020"),
        Row("masks.segments", "query id = key id", "T S", "Krell 2021"),
        Row("masks.edges", "s -> t is an edge", "T S", "Velickovic 2018"),
        Row("masks.blocks", "t // b = s // b", "T S", "Qiu 2020"),
        Row("masks.strided", "s <= t, and t - s <= l or l divides t - s", "T S", "Child 2019"),
        Row("masks.fixed", "s <= t, and the same block or its summary", "T S", "Child 2019"),
        Row("masks.global_tokens", "g[t] or g[s]", "T S", "Beltagy 2020"),
        Row("masks.random_blocks", "r random key blocks for each query block", "T S", "Zaheer 2020"),
    ),
    "Positions": (
        Row("positions.sinusoidal", "sin(p w_i), cos(p w_i)", "T D", "Vaswani 2017"),
        Row("positions.sinusoidal_2d", "one half for the row, one for the column", "T D", "Beyer 2022"),
        Row("positions.learned", "table[p]", "T D", "Gehring 2017"),
        Row("positions.add", "x + PE", "T D", "Vaswani 2017"),
        Row("positions.concatenate", "[x; PE]", "T D", "Collobert 2011"),
        Row("positions.rotary", "pairs of features turned by p w_i", "T H", "Su 2021"),
        Row(
            "relative_positions.shaw_attention",
            "softmax(q (k + a[s - t]) / sqrt(H)) (v + b[s - t])",
            "T (T + S) (H + V)",
            "Shaw 2018",
        ),
        Row("relative_positions.t5_bias", "table[bucket(s - t), n]", "T S", "Raffel 2020"),
        Row("relative_positions.alibi", "-slope[n] |s - t|", "T S", "Press 2022"),
    ),
    "Localness, as a bias": (
        Row("localness.centred", "-(s - t)^2 / (2 (D / 2)^2)", "T S", "Yang 2018"),
        Row(
            "localness.fixed_window", "around P = S sigmoid(u tanh(W q)), D given", "T (S + H A)", "Yang 2018"
        ),
        Row("localness.layer_window", "D = S sigmoid(v tanh(M mean k))", "T (S + H A)", "Yang 2018"),
        Row("localness.query_window", "D = S sigmoid(v tanh(W q))", "T (S + H A)", "Yang 2018"),
    ),
    "Exact, but cheaper": (
        Row(
            "blockwise_attention",
            "softmax(q k) v, scores never stored",
            "T S (H + V)",
            "Milakov 2018, Dao 2022",
        ),
        Row("banded_attention", "attend with masks.band", "T w (H + V)", "Parmar 2018, Beltagy 2020"),
        Row("longformer_attention", "window and global positions", "T (w + g) (H + V)", "Beltagy 2020"),
        Row("bigbird_attention", "window, global and random blocks", "T (w + g + r) (H + V)", "Zaheer 2020"),
        Row("strided_attention", "attend with masks.strided", "T sqrt(T) (H + V)", "Child 2019"),
        Row("dilated_attention", "attend with masks.dilated", "T w (H + V)", "Beltagy 2020"),
        Row("graph_attention", "attend with masks.edges, from the edge list", "E (H + V)", "Velickovic 2018"),
        Row("gat_attention", "leaky_relu(a q + b k) along the edges", "E V", "Velickovic 2018"),
    ),
    "Approximate": (
        Row(
            "linear_attention",
            "phi(q) . phi(k) over its sum",
            "(T + S) M V",
            "Katharopoulos 2020",
            APPROXIMATE,
        ),
        Row(
            "performer_attention",
            "the same, phi(x) = exp(w x - |x|^2 / 2)",
            "(T + S) M V",
            "Choromanski 2021",
            APPROXIMATE,
        ),
        Row(
            "cosformer_attention",
            "relu(q) relu(k) cos(pi (t - s) / 2 L)",
            "(T + S) H V",
            "Qin 2022",
            APPROXIMATE,
        ),
        Row("linformer_attention", "softmax(q (E k)) (F v)", "(T + S) R (H + V)", "Wang 2020", APPROXIMATE),
        Row(
            "nystromformer_attention",
            "softmax(q k') softmax(q' k')^+ softmax(q' k) v",
            "T L (H + V)",
            "Xiong 2021",
            APPROXIMATE,
        ),
        Row(
            "reformer_attention",
            "softmax within buckets of a hash",
            "R T c (H + V)",
            "Kitaev 2020",
            APPROXIMATE,
        ),
        Row(
            "sinkhorn_attention", "own block and a block sorted to it", "T b (H + V)", "Tay 2020", APPROXIMATE
        ),
        Row(
            "attention_free_full",
            "sigmoid(q) sum exp(k + w[t, s]) v over its sum",
            "T S V",
            "Zhai 2021",
            APPROXIMATE,
        ),
        Row("attention_free_local", "the same, w = 0 outside a window", "T S V", "Zhai 2021", APPROXIMATE),
    ),
    "Historic and structured": (
        Row("local.local_m", "softmax over |s - t| <= D", "T S H", "Luong 2015"),
        Row(
            "local.local_p",
            "softmax times a Gaussian around p = S sigmoid(v tanh(W q))",
            "T S H",
            "Luong 2015",
        ),
        Row("hard.sample", "v[s], s drawn from the weights", "T (S + V)", "Xu 2015", ESTIMATE),
        Row(
            "hard.variational_loss",
            "its loss, by REINFORCE with a baseline",
            "B",
            "Xu 2015, Williams 1992",
            ESTIMATE,
        ),
        Row("hard.doubly_stochastic", "sum_s (1 - sum_t w[t, s])^2", "T S", "Xu 2015"),
        Row("pooling.self_attentive", "softmax(W2 tanh(W1 x)) x, r hops", "S (D A + A R + R D)", "Lin 2017"),
        Row("pooling.penalty", "|A A^T - I|_F^2", "R^2 S", "Lin 2017"),
        Row("pooling.last", "x[length - 1]", "S", "Sutskever 2014"),
        Row("pooling.mean", "sum_s x[s] / length", "S D", "Lin 2014"),
        Row("pooling.maximum", "max_s x[s]", "S D", "Collobert 2011"),
        Row(
            "co_attention.co_attention", "softmax_s(L) v and softmax_t(L)^T q", "T S H", "Lu 2016, Xiong 2017"
        ),
        Row("co_attention.gate", "sigmoid(W [p; c]) [p; c]", "T (D + C)^2", "Wang 2017"),
        Row("convolution.convolve", "a convolution, by one head per offset", "N T S F", "Cordonnier 2020"),
        Row("complexity", "FLOPs, bytes, sequential steps, path length", "1", "Vaswani 2017"),
    ),
}


def markdown() -> str:
    """The whole catalogue as Markdown tables, one for each family."""
    return "\n\n".join(_table(family, rows) for family, rows in CATALOGUE.items())


def _table(family: str, rows: tuple[Row, ...]) -> str:
    lines = [f"| {family} | formula | cost | | source |", "|---|---|---|---|---|"]
    for row in rows:
        cells = (f"`{row.name}`", f"`{row.formula}`", row.cost, row.kind, row.paper)
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    return "\n".join(lines)


def update(text: str) -> str:
    """A text with the tables between its two marks brought up to date."""
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n\n{markdown()}\n\n{END}{after}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        file = Path(sys.argv[1])
        file.write_text(update(file.read_text()))
    else:
        print(markdown())
