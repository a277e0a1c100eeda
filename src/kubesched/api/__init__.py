"""The nouns: typed, frozen, lean views of Kubernetes objects, and their small algebra."""
