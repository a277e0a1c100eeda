"""The conformance kit: does a plugin keep the contract, whatever the cluster?"""
