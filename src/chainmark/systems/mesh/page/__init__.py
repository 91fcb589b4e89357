"""The published page of load tests: releases × hardware × scenarios, measured with chainmark or printed before."""
