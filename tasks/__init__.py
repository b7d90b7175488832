"""Task types: what a batch means, the loss, the metrics, how to predict."""

from ml_collections import ConfigDict

from spec import Registry
from tasks.captioning import Captioning
from tasks.graph import GraphPrediction
from tasks.image_classification import ImageClassification
from tasks.reading import Reading
from tasks.sequence_classification import SequenceClassification
from tasks.sequence_labeling import SequenceLabeling
from tasks.task import Task
from tasks.transcription import Transcription
from tasks.translation import Translation

TASKS = Registry(
    "task",
    {
        "captioning": Captioning,
        "graph": GraphPrediction,
        "image_classification": ImageClassification,
        "reading": Reading,
        "sequence_classification": SequenceClassification,
        "sequence_labeling": SequenceLabeling,
        "transcription": Transcription,
        "translation": Translation,
    },
    key="task",
    given=("seed",),
)


def build(config: ConfigDict) -> Task:
    """The task of a config, of whose fields it takes its own."""
    fields = {name: config[name] for name in TASKS.fields(TASKS.chosen(config, "config"))}
    return TASKS.build({"task": config.task, **fields}, "config", seed=config.seed)
