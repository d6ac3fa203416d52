"""Reads an organization's data from the Organization Read API."""

from ._clients import AsyncOrgApi, OrgApi
from ._core import ApiResponse, OrgApiError, RateLimit

__all__ = ["ApiResponse", "AsyncOrgApi", "OrgApi", "OrgApiError", "RateLimit"]
