"""Values of mcpdetect: events, places, observations, traces, results. No behaviour, no input or output."""
