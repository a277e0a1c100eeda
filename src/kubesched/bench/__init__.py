"""How fast is it, and did it place the pods right?  The core alone, without HTTP and without sleep."""
