"""Image models, by the word that a config names each by."""

from models.images.cnn import CNN
from models.images.vit import ViT
from spec import Registry

IMAGE_MODELS = Registry("image model", {"cnn": CNN, "vit": ViT}, given=("image_shape", "num_classes", "rngs"))
