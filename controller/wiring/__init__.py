"""The composition root: settings become adapters, adapters become a world, and the command line calls nothing else."""

from controller.wiring.cards import build_rate_card, lint_card, pin_card
from controller.wiring.cases import metering_cases, price_record, statistics_cases
from controller.wiring.demo import next_demo_directory, point_bundle, point_latest
from controller.wiring.freezing import freeze_plan
from controller.wiring.granting import full_caps, grant
from controller.wiring.planning import plan_statistics, planning_text
from controller.wiring.protocols import analyse_protocol
from controller.wiring.releasing import (
    analyse_dataset,
    analyse_round,
    check_bundle,
    conclusion,
    describe_check,
    publish_round,
)
from controller.wiring.rounds import OpenRound, conducting, read_round, read_status
from controller.wiring.settling import settle_round
from controller.wiring.tasks import check_task, load_bundle, verify_patch
from controller.wiring.tools import build_images, image_digests, image_store, make_pool, system_clock

__all__ = [
    "OpenRound",
    "analyse_dataset",
    "analyse_protocol",
    "analyse_round",
    "build_images",
    "build_rate_card",
    "check_bundle",
    "check_task",
    "conclusion",
    "conducting",
    "describe_check",
    "freeze_plan",
    "full_caps",
    "grant",
    "image_digests",
    "image_store",
    "lint_card",
    "load_bundle",
    "make_pool",
    "metering_cases",
    "next_demo_directory",
    "pin_card",
    "plan_statistics",
    "planning_text",
    "point_bundle",
    "point_latest",
    "price_record",
    "publish_round",
    "read_round",
    "read_status",
    "settle_round",
    "statistics_cases",
    "system_clock",
    "verify_patch",
]
