"""What stands around the program: local servers, builds, deployments."""
