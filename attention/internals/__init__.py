"""What the mechanisms share and no caller needs: checks, masking, tiling, the parts of a softmax.

Nothing here is a mechanism, and nothing here imports one.
"""
