"""The recorder: a cell of network namespaces, the tools that watch it, and the bundle they leave."""
