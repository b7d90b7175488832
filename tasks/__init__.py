"""Task types: what a batch means, the loss, the metrics, how to predict."""

from ml_collections import ConfigDict

from errors import unknown
from tasks.image_classification import ImageClassification
from tasks.task import Task

TASKS: dict[str, type[ImageClassification]] = {"image_classification": ImageClassification}


def build(config: ConfigDict) -> Task:
    """The task that `config.task` names."""
    if config.task not in TASKS:
        raise unknown("task", config.task, TASKS)
    return TASKS[config.task].from_config(config)
