"""The modules in which scripts for onnxruntime look for its exceptions and for names of its extension module."""
