"""What stands behind the ports: stores, queues and models, one package for each technology."""
