"""What bench/run is made of: inputs and subjects, configurations, measuring, reports, plots."""
