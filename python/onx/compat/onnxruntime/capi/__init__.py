"""Where scripts for onnxruntime look for its failures, and for what is in its module in C."""
