"""Facts that join events and channels: names, processes, attempts, denial."""
