"""Draws bench/results/retrieval.svg: nDCG@10 of every system on every set.

python bench/peers/plot_retrieval.py RESULTS.json PLOT.svg
"""

import json
import sys

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

results = json.load(open(sys.argv[1]))  # noqa: PTH123, SIM115 - a script of a few lines
systems = list(dict.fromkeys(system for found in results.values() for system in found))
figure, axes = pyplot.subplots(figsize=(11, 4.5))
width = 0.8 / len(systems)
for place, system in enumerate(systems):
    heights = [found.get(system, {}).get("ndcg_10", 0.0) for found in results.values()]
    left = [number + place * width for number in range(len(results))]
    axes.bar(left, heights, width, label=system)
axes.set_xticks([number + 0.4 - width / 2 for number in range(len(results))], list(results))
axes.set_ylabel("nDCG@10")
axes.set_ylim(0, 1)
axes.legend(ncols=3, fontsize=8, frameon=False)
for side in ("top", "right"):
    axes.spines[side].set_visible(False)
figure.tight_layout()
figure.savefig(sys.argv[2])
