"""Routes of the workbench's pages: each calls one plain function of a system, and does nothing else."""
