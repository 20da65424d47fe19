"""An open runtime for Mixture-of-LoRA agent models."""
