"""Sessions that outlive the process: the store seam, its implementations, and the recorder."""
