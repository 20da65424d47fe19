"""What the agent specialist of `demi` learns from: requests and the tool calls that answer them."""
