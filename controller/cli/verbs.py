"""The table of verbs. Each imports what it needs when it runs, so that --help answers at once."""

from __future__ import annotations

import typer

from controller.cli import (
    analyse,
    approve,
    card,
    control,
    demo,
    dispute,
    doctor,
    freeze,
    holdout,
    images,
    pool,
    price,
    release,
    reveal,
    serve,
    status,
    task,
    timestamp,
    verify,
    witness,
)

app = typer.Typer(
    name="fairtrial",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Benchmarks of coding-agent harnesses: every attempt, every dollar and every exclusion, provable.",
)

app.command()(doctor.doctor)
app.add_typer(images.app, name="images")
app.command()(demo.demo)
app.add_typer(task.app, name="task")
app.command()(freeze.freeze)
app.command()(freeze.authorize)
app.command()(control.start)
app.command()(status.status)
app.command()(status.watch)
app.command()(control.stop)
app.command()(control.resume)
app.command()(control.resolve)
app.command()(release.settle)
app.command()(analyse.analyse)
app.command()(approve.approve)
app.command()(release.publish)
app.command()(release.check)
app.command()(reveal.reveal)
app.add_typer(holdout.app, name="holdout")
app.command()(dispute.dispute)
app.add_typer(witness.app, name="witness")
app.add_typer(timestamp.app, name="timestamp")
app.command()(price.price)
app.add_typer(card.app, name="card")
app.command()(verify.verify)
app.add_typer(pool.app, name="pool")
app.add_typer(serve.app, name="serve")
