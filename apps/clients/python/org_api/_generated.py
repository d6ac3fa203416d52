# Generated from apps/api/openapi/openapi.json by `npm run tool -- clients`. Do not edit.
# SHA-256 of what it contains of the document: 2e9c55836ad89c14727622daf808df3a9381dd47fb1588c50bd79da766c6375a
# SHA-256 of its generator: f870b5628c8da311f10c665a3fdf3f213a2594effee2d911393a9cee3684b912
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional, overload

if TYPE_CHECKING:
    from ._core import ApiResponse
    from .models import (
        Members,
        Organization,
        Outcomes,
        ReferralCodes,
        ReferralEarnings,
        Roles,
        Roster,
        SeatCounts,
        SeatFamilies,
    )

VERSION = "1.0.0"
SERVERS = {
    "us": "https://us.org-api.example",
    "ca": "https://ca.org-api.example",
}


class Reads:
    def _read(self, path: str, organization_id: str, if_none_match: Optional[str]) -> ApiResponse[Any]:
        raise NotImplementedError

    @overload
    def get_org(self, organization_id: str) -> ApiResponse[Organization]: ...
    @overload
    def get_org(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[Organization]]: ...
    def get_org(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """The organization’s record.

        The organization’s own record: its name, slug, kind, status and when it was created.

        The key needs the scope `org.read`.
        """
        return self._read("/v1/orgs/{orgId}", organization_id, if_none_match)

    @overload
    def get_firm_roster(self, organization_id: str) -> ApiResponse[Roster]: ...
    @overload
    def get_firm_roster(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[Roster]]: ...
    def get_firm_roster(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """The roster of client families.

        Which families gave the organization’s professionals access and since when: names and dates only, never what a family writes, files, pays or records. The list is complete.

        The key needs the scope `org.clients.read`.
        """
        return self._read("/v1/orgs/{orgId}/clients", organization_id, if_none_match)

    @overload
    def list_members(self, organization_id: str) -> ApiResponse[Members]: ...
    @overload
    def list_members(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[Members]]: ...
    def list_members(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """Members and their roles.

        Everyone who has not left the organization, with the roles they hold. The list is complete.

        The key needs the scope `org.members.read`.
        """
        return self._read("/v1/orgs/{orgId}/members", organization_id, if_none_match)

    @overload
    def get_firm_outcomes(self, organization_id: str) -> ApiResponse[Outcomes]: ...
    @overload
    def get_firm_outcomes(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[Outcomes]]: ...
    def get_firm_outcomes(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """De-identified outcomes over 90 days.

        Outcomes across all client families together over the 90 whole UTC days before today. Nothing is reported for fewer than 5 families, and no metric to which fewer than 5 contributed.

        The key needs the scope `org.analytics.read`.
        """
        return self._read("/v1/orgs/{orgId}/outcomes", organization_id, if_none_match)

    @overload
    def list_org_referral_codes(self, organization_id: str) -> ApiResponse[ReferralCodes]: ...
    @overload
    def list_org_referral_codes(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[ReferralCodes]]: ...
    def list_org_referral_codes(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """Referral codes with counts.

        The organization’s referral codes and how many referrals each brought. The list is complete.

        The key needs the scope `org.referrals.manage`.
        """
        return self._read("/v1/orgs/{orgId}/referral-codes", organization_id, if_none_match)

    @overload
    def get_org_referral_earnings(self, organization_id: str) -> ApiResponse[ReferralEarnings]: ...
    @overload
    def get_org_referral_earnings(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[ReferralEarnings]]: ...
    def get_org_referral_earnings(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """Referral earnings by month.

        The organization’s share of referred invoices, summed per month and currency. Only sums are given.

        The key needs the scope `org.referrals.manage`.
        """
        return self._read("/v1/orgs/{orgId}/referral-earnings", organization_id, if_none_match)

    @overload
    def list_roles(self, organization_id: str) -> ApiResponse[Roles]: ...
    @overload
    def list_roles(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[Roles]]: ...
    def list_roles(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """System roles and own roles.

        The roles every organization has, and the organization’s own, with the permissions each gives.

        The key needs the scope `org.roles.read`.
        """
        return self._read("/v1/orgs/{orgId}/roles", organization_id, if_none_match)

    @overload
    def get_org_seats(self, organization_id: str) -> ApiResponse[SeatCounts]: ...
    @overload
    def get_org_seats(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[SeatCounts]]: ...
    def get_org_seats(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """Seat counts and subscriptions.

        How many seats the organization has and uses, what one costs, and the subscriptions that pay for them.

        The key needs the scope `org.billing.manage`.
        """
        return self._read("/v1/orgs/{orgId}/seats", organization_id, if_none_match)

    @overload
    def get_org_seat_families(self, organization_id: str) -> ApiResponse[SeatFamilies]: ...
    @overload
    def get_org_seat_families(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[SeatFamilies]]: ...
    def get_org_seat_families(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """Client families and seats.

        Which client families have a seat, which could have one and which had one; names only. The lists are complete.

        The key needs the scope `org.clients.read`.
        """
        return self._read("/v1/orgs/{orgId}/seats/families", organization_id, if_none_match)


class AsyncReads:
    async def _read(self, path: str, organization_id: str, if_none_match: Optional[str]) -> ApiResponse[Any]:
        raise NotImplementedError

    @overload
    async def get_org(self, organization_id: str) -> ApiResponse[Organization]: ...
    @overload
    async def get_org(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[Organization]]: ...
    async def get_org(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """The organization’s record.

        The organization’s own record: its name, slug, kind, status and when it was created.

        The key needs the scope `org.read`.
        """
        return await self._read("/v1/orgs/{orgId}", organization_id, if_none_match)

    @overload
    async def get_firm_roster(self, organization_id: str) -> ApiResponse[Roster]: ...
    @overload
    async def get_firm_roster(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[Roster]]: ...
    async def get_firm_roster(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """The roster of client families.

        Which families gave the organization’s professionals access and since when: names and dates only, never what a family writes, files, pays or records. The list is complete.

        The key needs the scope `org.clients.read`.
        """
        return await self._read("/v1/orgs/{orgId}/clients", organization_id, if_none_match)

    @overload
    async def list_members(self, organization_id: str) -> ApiResponse[Members]: ...
    @overload
    async def list_members(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[Members]]: ...
    async def list_members(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """Members and their roles.

        Everyone who has not left the organization, with the roles they hold. The list is complete.

        The key needs the scope `org.members.read`.
        """
        return await self._read("/v1/orgs/{orgId}/members", organization_id, if_none_match)

    @overload
    async def get_firm_outcomes(self, organization_id: str) -> ApiResponse[Outcomes]: ...
    @overload
    async def get_firm_outcomes(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[Outcomes]]: ...
    async def get_firm_outcomes(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """De-identified outcomes over 90 days.

        Outcomes across all client families together over the 90 whole UTC days before today. Nothing is reported for fewer than 5 families, and no metric to which fewer than 5 contributed.

        The key needs the scope `org.analytics.read`.
        """
        return await self._read("/v1/orgs/{orgId}/outcomes", organization_id, if_none_match)

    @overload
    async def list_org_referral_codes(self, organization_id: str) -> ApiResponse[ReferralCodes]: ...
    @overload
    async def list_org_referral_codes(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[ReferralCodes]]: ...
    async def list_org_referral_codes(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """Referral codes with counts.

        The organization’s referral codes and how many referrals each brought. The list is complete.

        The key needs the scope `org.referrals.manage`.
        """
        return await self._read("/v1/orgs/{orgId}/referral-codes", organization_id, if_none_match)

    @overload
    async def get_org_referral_earnings(self, organization_id: str) -> ApiResponse[ReferralEarnings]: ...
    @overload
    async def get_org_referral_earnings(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[ReferralEarnings]]: ...
    async def get_org_referral_earnings(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """Referral earnings by month.

        The organization’s share of referred invoices, summed per month and currency. Only sums are given.

        The key needs the scope `org.referrals.manage`.
        """
        return await self._read("/v1/orgs/{orgId}/referral-earnings", organization_id, if_none_match)

    @overload
    async def list_roles(self, organization_id: str) -> ApiResponse[Roles]: ...
    @overload
    async def list_roles(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[Roles]]: ...
    async def list_roles(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """System roles and own roles.

        The roles every organization has, and the organization’s own, with the permissions each gives.

        The key needs the scope `org.roles.read`.
        """
        return await self._read("/v1/orgs/{orgId}/roles", organization_id, if_none_match)

    @overload
    async def get_org_seats(self, organization_id: str) -> ApiResponse[SeatCounts]: ...
    @overload
    async def get_org_seats(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[SeatCounts]]: ...
    async def get_org_seats(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """Seat counts and subscriptions.

        How many seats the organization has and uses, what one costs, and the subscriptions that pay for them.

        The key needs the scope `org.billing.manage`.
        """
        return await self._read("/v1/orgs/{orgId}/seats", organization_id, if_none_match)

    @overload
    async def get_org_seat_families(self, organization_id: str) -> ApiResponse[SeatFamilies]: ...
    @overload
    async def get_org_seat_families(self, organization_id: str, *, if_none_match: str) -> ApiResponse[Optional[SeatFamilies]]: ...
    async def get_org_seat_families(self, organization_id: str, *, if_none_match: Optional[str] = None) -> ApiResponse[Any]:
        """Client families and seats.

        Which client families have a seat, which could have one and which had one; names only. The lists are complete.

        The key needs the scope `org.clients.read`.
        """
        return await self._read("/v1/orgs/{orgId}/seats/families", organization_id, if_none_match)
