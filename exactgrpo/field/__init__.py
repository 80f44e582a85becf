"""The formulas that the field uses beside the update: KL estimators, advantages, ratios, surrogates, aggregation, returns and traces."""
