"""The page of load tests that a team publishes: releases × hardware × scenarios, measured here or printed before."""
