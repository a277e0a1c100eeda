"""The configuration files of kube-scheduler are read as they are, old versions too."""

from kubesched.assemble import profiles_of
from kubesched.config.load import load_text
from kubesched.framework.hooks import name_of

TEXT = b"""
apiVersion: kubescheduler.config.k8s.io/v1beta2
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: by-label
    plugins:
      score:
        disabled: [{name: "*"}]
        enabled: [{name: ScoreByLabel, weight: 5}]
    pluginConfig:
      - {name: ScoreByLabel, args: {labelKey: speed}}
"""

loaded = load_text(TEXT, "example.yaml")
for note in loaded.notes:
    print("note:", note)
for name, profile in profiles_of(loaded.configuration).items():
    print(name)
    for point, plugins in profile.points.items():
        if plugins:
            print(f"  {point}: {', '.join(name_of(plugin) for plugin in plugins)}")
    print("  weights:", profile.weights)
