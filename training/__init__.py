"""What the training loop needs: state, optimiser, checkpoints, metrics, progress, sharding."""
