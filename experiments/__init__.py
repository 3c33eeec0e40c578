"""The paper's section 4.1 as a command: configurations (toml) to results (json) to a figure, tables and claims."""
