"""The readers' side: datasets are opened, verified, looked into and fed to training."""
