"""Names the plugin; everything else is in it."""

pytest_plugins = ("reports.plugin",)
