"""The desks of the synthetic newsroom: one file each, and all their stories in one table."""

from __future__ import annotations

from newsroom.desks import (
    ambiguous,
    crossover,
    culture,
    economy,
    politics,
    science,
    service,
    sport,
    weather,
)
from newsroom.story import Story

STORIES: tuple[Story, ...] = (
    *sport.STORIES,
    *politics.STORIES,
    *economy.STORIES,
    *science.STORIES,
    *culture.STORIES,
    *weather.STORIES,
    *crossover.STORIES,
    *ambiguous.STORIES,
    *service.STORIES,
)
