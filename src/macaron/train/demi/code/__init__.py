"""What the coding specialist of `demi` learns from: requests and the code that answers them."""
