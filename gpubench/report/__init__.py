"""View models, figures and pages: from findings to static HTML that opens from disk."""
