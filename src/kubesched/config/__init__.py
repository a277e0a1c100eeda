"""KubeSchedulerConfiguration: what it may say, how it is read, and which plugins it means."""
