"""What runs in executors, and how a plan is cut for them."""
