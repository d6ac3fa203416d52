# Generated from apps/api/openapi/openapi.json by `npm run tool -- clients`. Do not edit.
# SHA-256 of what it contains of the document: 2e9c55836ad89c14727622daf808df3a9381dd47fb1588c50bd79da766c6375a
# SHA-256 of its generator: f870b5628c8da311f10c665a3fdf3f213a2594effee2d911393a9cee3684b912
from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import NotRequired, TypeAlias


class Organization(TypedDict):
    id: str
    name: str
    slug: str
    kind: (
        Literal[
            'direct',
            'law_firm',
            'mediation',
            'legal_aid',
            'court',
            'nonprofit',
            'other',
        ]
        | str
    )
    status: str
    """
    `active`, or another word of those who run the service. It never changes what keys may read.
    """
    createdAt: str
    """
    ISO 8601, UTC, milliseconds, ending in Z.
    """


class Seats(TypedDict):
    members: int
    """
    Active members.
    """
    professionalsWithClients: int
    """
    Professionals with an active grant, active members or not.
    """
    activeFamilies: int
    """
    Families with an active grant.
    """


class RosterClient(TypedDict):
    grantId: str
    """
    The consent grant.
    """
    kind: Literal['attorney', 'neutral'] | str
    professional: str
    """
    Name of the professional.
    """
    family: str
    """
    Name of the family.
    """
    since: str
    """
    When access began. Access that lies ahead is not listed.
    """
    endsAt: str | None
    """
    When access ends or ended; may lie ahead of an active grant.
    """
    status: Literal['active', 'ended'] | str


class RoleReference(TypedDict):
    id: str
    key: str
    name: str


class Metric(TypedDict):
    count: int
    of: int
    percent: float | None
    """
    100·count/of, one decimal, half up; null when `of` is 0.
    """


class Counts(TypedDict):
    signedUp: int
    """
    All referrals of the code.
    """
    qualified: int
    notCounted: int


class ReferralCode(TypedDict):
    id: str
    code: str
    link: str
    label: str | None
    active: bool
    counts: Counts


class MonthlyEarnings(TypedDict):
    month: str
    """
    For example `2026-09`.
    """
    currency: str
    invoices: int
    shareCents: int
    """
    The organization’s share, in minor currency units.
    """


class Role(TypedDict):
    id: str
    key: str
    name: str
    description: str
    isSystem: bool
    """
    True for the roles every organization has.
    """
    permissions: list[str]


class PricePerSeat(TypedDict):
    currency: str
    cents: int


class SeatSubscription(TypedDict):
    status: str
    quantity: int
    renewsAt: str | None
    """
    ISO 8601, UTC, milliseconds, ending in Z.
    """
    cancelAtPeriodEnd: bool


class HeldSeat(TypedDict):
    id: str
    grantId: str
    family: str
    professional: str
    kind: Literal['attorney', 'neutral'] | str
    givenAt: str
    """
    ISO 8601, UTC, milliseconds, ending in Z.
    """


class EligibleFamily(TypedDict):
    grantId: str
    family: str
    professional: str
    kind: Literal['attorney', 'neutral'] | str


class EndedSeat(TypedDict):
    id: str
    family: str
    endedAt: str
    """
    ISO 8601, UTC, milliseconds, ending in Z.
    """
    reason: Literal['ended_by_organization', 'access_ended', 'subscription_ended'] | str


class ErrorBody(TypedDict):
    error: str
    """
    A code; see the description of each status.
    """
    message: NotRequired[str]
    requestId: NotRequired[str]
    """
    Present on 500 and 503: quote it when asking for help.
    """


class Organization1(TypedDict):
    id: str


class Data(TypedDict):
    grantId: str
    """
    The consent grant, as in the roster.
    """
    kind: Literal['attorney', 'neutral'] | str
    """
    How the professional works with the family.
    """


class ClientStartedEvent(TypedDict):
    id: str
    """
    Identical on every retry, so that a repeat can be ignored.
    """
    type: Literal['client.started']
    createdAt: str
    """
    When it happened or was found, in UTC with milliseconds: compared as text it orders the events of one seat or grant.
    """
    organization: Organization1
    data: Data
    test: NotRequired[Literal[True]]
    """
    Only on a test event, which the organization asked for: nothing happened, and the ids in `data` name nothing. Answer it like any other and act on none of it.
    """


class Data1(TypedDict):
    grantId: str
    """
    The consent grant, as in the roster.
    """
    kind: Literal['attorney', 'neutral'] | str
    """
    How the professional works with the family.
    """
    reason: Literal['ended', 'moved'] | str
    """
    `ended`: access ended; `moved`: the professional moved the work out.
    """


class ClientEndedEvent(TypedDict):
    id: str
    """
    Identical on every retry, so that a repeat can be ignored.
    """
    type: Literal['client.ended']
    createdAt: str
    """
    When it happened or was found, in UTC with milliseconds: compared as text it orders the events of one seat or grant.
    """
    organization: Organization1
    data: Data1
    test: NotRequired[Literal[True]]
    """
    Only on a test event, which the organization asked for: nothing happened, and the ids in `data` name nothing. Answer it like any other and act on none of it.
    """


class Data2(TypedDict):
    seatId: str
    """
    The `id` of the seat in `getOrgSeatFamilies`.
    """
    grantId: str
    """
    The consent grant, as in the roster.
    """


class SeatGivenEvent(TypedDict):
    id: str
    """
    Identical on every retry, so that a repeat can be ignored.
    """
    type: Literal['seat.given']
    createdAt: str
    """
    When it happened or was found, in UTC with milliseconds: compared as text it orders the events of one seat or grant.
    """
    organization: Organization1
    data: Data2
    test: NotRequired[Literal[True]]
    """
    Only on a test event, which the organization asked for: nothing happened, and the ids in `data` name nothing. Answer it like any other and act on none of it.
    """


class Data3(TypedDict):
    seatId: str
    """
    The `id` of the seat in `getOrgSeatFamilies`.
    """
    grantId: str
    """
    The consent grant, as in the roster.
    """
    reason: Literal['ended_by_organization', 'access_ended', 'subscription_ended'] | str


class SeatEndedEvent(TypedDict):
    id: str
    """
    Identical on every retry, so that a repeat can be ignored.
    """
    type: Literal['seat.ended']
    createdAt: str
    """
    When it happened or was found, in UTC with milliseconds: compared as text it orders the events of one seat or grant.
    """
    organization: Organization1
    data: Data3
    test: NotRequired[Literal[True]]
    """
    Only on a test event, which the organization asked for: nothing happened, and the ids in `data` name nothing. Answer it like any other and act on none of it.
    """


class Data4(TypedDict):
    webhookId: str
    """
    Another webhook of the organization.
    """
    failingSince: str
    """
    Since when nothing was accepted.
    """


class WebhookFailingEvent(TypedDict):
    id: str
    """
    Identical on every retry, so that a repeat can be ignored.
    """
    type: Literal['webhook.failing']
    createdAt: str
    """
    When it happened or was found, in UTC with milliseconds: compared as text it orders the events of one seat or grant.
    """
    organization: Organization1
    data: Data4
    test: NotRequired[Literal[True]]
    """
    Only on a test event, which the organization asked for: nothing happened, and the ids in `data` name nothing. Answer it like any other and act on none of it.
    """


class Data5(TypedDict):
    webhookId: str
    """
    Another webhook of the organization.
    """
    suspendedAt: str
    reason: Literal['failures', 'gone'] | str
    """
    `failures`: its receiver accepted nothing for days; `gone`: it answered 410.
    """


class WebhookSuspendedEvent(TypedDict):
    id: str
    """
    Identical on every retry, so that a repeat can be ignored.
    """
    type: Literal['webhook.suspended']
    createdAt: str
    """
    When it happened or was found, in UTC with milliseconds: compared as text it orders the events of one seat or grant.
    """
    organization: Organization1
    data: Data5
    test: NotRequired[Literal[True]]
    """
    Only on a test event, which the organization asked for: nothing happened, and the ids in `data` name nothing. Answer it like any other and act on none of it.
    """


class Data6(TypedDict):
    keyId: str
    """
    The key, as in the console.
    """
    keyPrefix: str
    """
    Its beginning.
    """
    expiresAt: str


class KeyExpiringEvent(TypedDict):
    id: str
    """
    Identical on every retry, so that a repeat can be ignored.
    """
    type: Literal['key.expiring']
    createdAt: str
    """
    When it happened or was found, in UTC with milliseconds: compared as text it orders the events of one seat or grant.
    """
    organization: Organization1
    data: Data6
    test: NotRequired[Literal[True]]
    """
    Only on a test event, which the organization asked for: nothing happened, and the ids in `data` name nothing. Answer it like any other and act on none of it.
    """


class Roster(TypedDict):
    clients: list[RosterClient]
    """
    All grants, ordered by `since`, then `grantId`.
    """
    seats: Seats


class Member(TypedDict):
    userId: str
    name: str
    email: str
    title: str | None
    status: Literal['invited', 'active', 'suspended'] | str
    """
    Members who left are not listed.
    """
    roles: list[RoleReference]
    """
    Ordered by key.
    """


class Outcomes(TypedDict):
    windowDays: Literal[90]
    """
    The whole UTC days before today.
    """
    families: int
    """
    Client families counted.
    """
    minimumFamilies: Literal[5]
    """
    The floor below which results are withheld.
    """
    shown: bool
    calmMessages: Metric | None
    """
    Null unless results are shown and at least 5 families contributed to `of`.
    """
    exchangesOnTime: Metric | None
    """
    Null unless results are shown and at least 5 families contributed to `of`.
    """
    expensesAnsweredIn14Days: Metric | None
    """
    Null unless results are shown and at least 5 families contributed to `of`.
    """


ReferralCodes: TypeAlias = list[ReferralCode]
"""
Ordered by code.
"""


class ReferralEarnings(TypedDict):
    months: list[MonthlyEarnings]
    """
    Sums only, ordered by month, then currency.
    """


Roles: TypeAlias = list[Role]
"""
System roles in a fixed order, then own roles by name, then id.
"""


class SeatCounts(TypedDict):
    total: int
    """
    Seats the organization has: paid and invoiced.
    """
    used: int
    """
    Seats that client families hold.
    """
    paid: int
    """
    Seats of subscriptions that are active, trialing or past_due.
    """
    invoiced: int
    pricePerSeat: PricePerSeat | None
    subscriptions: list[SeatSubscription]
    """
    Ordered by `renewsAt` (null last), then by id.
    """


class SeatFamilies(TypedDict):
    seats: list[HeldSeat]
    """
    Families that hold a seat, ordered by `givenAt`, then id.
    """
    eligible: list[EligibleFamily]
    """
    Active grants whose family holds no seat, ordered by family, professional, `grantId`.
    """
    ended: list[EndedSeat]
    """
    Seats that ended, newest first, then by id.
    """


Members: TypeAlias = list[Member]
"""
Ordered by name, then `userId`.
"""
