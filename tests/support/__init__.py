"""What the end-to-end tests, the comparisons and the benchmark share: a client, a supervisor to talk to, /proc."""
