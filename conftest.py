"""Names the plugin; everything else is in it."""

pytest_plugins = ("qagate.reports.plugin",)
