"""Simulated studies: does a test claim as seldom, and an interval hold the truth as often, as it says?"""
