"""The paper's experiments as commands: configurations (toml) to results (JSON lines) to figures, tables and claims."""
