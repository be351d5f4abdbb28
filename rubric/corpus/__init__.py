"""Text of our own for training and measuring, by subject; `screen` holds the lines of the crisis screen."""
