"""Graphs: a label for every node, or a label or a number for the whole graph, by attention along edges.

    python train.py --config=configs/graph.py --workdir=runs/karate
    python train.py --config=configs/graph.py:dataset=cora,model=gat --workdir=runs/cora
    python train.py --config=configs/graph.py:dataset=esol,fold=0 --workdir=runs/esol
    python train.py --config=configs/graph.py:smoke --workdir=/tmp/smoke

Arguments: `model` (gat, transformer, mlp), `dataset` (karate, cora, citeseer; mutag, ptc, proteins, nci1;
esol, freesolv, lipophilicity, bbbp, bace; folder:DIR, file:X.csv), `fold` (which one is the test), `smoke`
(a run of seconds, to see that all is well). Molecules need the extra "molecules".

Expected on one CPU core: karate, seconds; Cora, 500 updates on the whole graph, about a minute, about 83 % of
the test papers (published 83.0, Velickovic et al. 2018, at half this learning rate); ESOL, a minute a fold,
RMSE about 0.7. The settings of the TU sets are not tuned.
"""

from ml_collections import ConfigDict

from configs import arguments, blocks
from errors import unknown

NODES = ("karate", "cora", "citeseer")  # a label for every node, with a split of their own; folders too
TAGGED = ("mutag", "ptc", "proteins", "nci1")
PAPERS = ("cora", "citeseer")

# By model: the encoder for a label per node, after Velickovic et al. 2018, and the one for whole graphs.
MODELS = {
    "gat": (
        {"num_layers": 2, "num_heads": 8, "head_dim": 8, "residual": False, "norm": False},
        {"num_layers": 4, "num_heads": 4, "head_dim": 16, "residual": True, "norm": True},
    ),
    "transformer": (
        {"dim": 64, "num_layers": 2, "num_heads": 4, "hidden_dim": 0},
        {"dim": 64, "num_layers": 4, "num_heads": 4, "hidden_dim": 0},
    ),
    "mlp": ({"dim": 64, "num_layers": 1}, {"dim": 64, "num_layers": 3}),
}


def get_config(argument: str | None = None) -> ConfigDict:
    """The config for an argument string."""
    chosen = arguments.parse(argument, model="gat", dataset="karate", fold=0, smoke=False)
    name, smoke = chosen["dataset"], chosen["smoke"]
    if chosen["model"] not in MODELS:
        raise unknown("model", chosen["model"], MODELS)
    per_node = name in NODES or name.startswith("folder:")

    config = ConfigDict()
    config.task = "graph"  # one of tasks.TASKS
    config.seed = 0  # of the initial parameters, the order of examples and dropout
    # Nodes per update, padding included; a larger graph is a batch alone, as the one of a set about nodes is.
    config.batch_nodes = 1 if per_node else 1024  # see above
    config.buckets = 3  # how many sizes of graphs to pad to, at most
    config.duration = "60 steps" if smoke else "500 steps" if per_node else "100 epochs"  # or "N examples"
    config.l2 = 5e-4 if per_node else 0.0  # penalty on kernels in the loss
    # What chooses the checkpoint on validation: accuracy, roc_auc (of two classes) or loss; rmse, mae or loss
    # of numbers; "": the first of these. Accuracy on a small validation part is too coarse.
    config.best_metric = "loss"  # see above

    config.dataset = ConfigDict()
    config.dataset.name = name  # see the arguments above
    config.dataset.data_dir = ""  # where prepared data lies; "": the default of data.prepare
    config.dataset.fold = chosen["fold"]  # which fold is the test, from 0; sets about nodes have none
    config.dataset.folds = 0  # how many; 0: as published (10), else 5
    config.dataset.fold_seed = 0  # of the permutation that makes them, and of what is held out
    config.dataset.validation_fraction = 0.1  # of the training folds, held out to choose on
    config.dataset.scaling = "rows" if name in PAPERS else "none"  # of features of nodes; or standard
    config.dataset.is_directed = False  # whether an edge of a folder is heard at its second node alone
    config.dataset.smiles_column = "smiles"  # of a file
    config.dataset.target_column = ""  # of a file; "": the one called target, label or y, or the only other
    config.dataset.targets = "auto"  # of a file: classes, numbers, or by the look of them

    config.model = ConfigDict()
    config.model.kind = chosen["model"]  # gat, transformer or mlp
    config.model.update(MODELS[chosen["model"]][not per_node])  # layers, heads and widths of the encoder
    config.model.dropout_rate = 0.6 if per_node else 0.1  # of inputs and attention weights
    config.model.pool = "" if per_node else "sum"  # or mean, max, self_attentive; "" for a label per node

    config.optimizer = blocks.optimizer(
        learning_rate=1e-2 if per_node else 2e-3,
        schedule="constant" if per_node else "cosine",
        warmup=0.0 if per_node else 0.05,
        second_momentum=0.999,
        weight_decay=0.0 if per_node else 1e-2,
        clip_norm=0.0 if per_node else 1.0,
    )
    config.evaluation_batch_nodes = 1 if per_node else 8192  # nodes per evaluation batch
    blocks.loop(config, smoke=smoke, every="10 steps" if per_node else "2 epochs")
    config.checkpoint_every = "60 steps" if smoke else "100 steps" if per_node else "20 epochs"  # "": never
    return config
