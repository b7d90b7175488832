"""Graphs: encoders of nodes, by the word that a config names each by, and the models made of them."""

from models.graphs.gat import GAT
from models.graphs.mlp import NodeMLP
from models.graphs.transformer import GraphTransformer
from spec import Registry

GRAPH_ENCODERS = Registry(
    "encoder of graphs",
    {"gat": GAT, "transformer": GraphTransformer, "mlp": NodeMLP},
    given=("in_dim", "out_dim", "edge_dim", "rngs"),
)
