"""Task types: what a batch means, the loss, the metrics, how to predict."""

from typing import Any

from ml_collections import ConfigDict

from errors import unknown
from tasks.captioning import Captioning
from tasks.graph import GraphPrediction
from tasks.image_classification import ImageClassification
from tasks.reading import Reading
from tasks.sequence_classification import SequenceClassification
from tasks.sequence_labeling import SequenceLabeling
from tasks.task import Task
from tasks.transcription import Transcription
from tasks.translation import Translation

TASKS: dict[str, Any] = {
    "captioning": Captioning,
    "graph": GraphPrediction,
    "image_classification": ImageClassification,
    "reading": Reading,
    "sequence_classification": SequenceClassification,
    "sequence_labeling": SequenceLabeling,
    "transcription": Transcription,
    "translation": Translation,
}


def build(config: ConfigDict) -> Task:
    """The task that `config.task` names."""
    if config.task not in TASKS:
        raise unknown("task", config.task, TASKS)
    return TASKS[config.task].from_config(config)
