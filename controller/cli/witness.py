"""`fairtrial witness`: a second party's word that a round's log only grew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from controller.cli import render
from controller.cli.options import Json, Round, settings

app = typer.Typer(no_args_is_help=True, help="A second party's word that a round's log only grew.")

Key = Annotated[Path, typer.Option("--key", help="The witness's private key, a PEM file; made at first use.")]
Name = Annotated[str, typer.Option("--name", help="Who the witness is, for example `example.org/witness`.")]
Out = Annotated[Path, typer.Option("--out", help="Where to write it; never overwritten.")]


@app.command()
def key(private: Key, name: Name, as_json: Json = False) -> None:
    """Print the line that readers give to `fairtrial check --witness`. Use the key for nothing else.

    Example: fairtrial witness key --key witness.pem --name example.org/witness
    """
    from controller.wiring.witnessing import verifier_key

    line = verifier_key(private, name)
    render.result({"vkey": line}, as_json=as_json, text=line)


@app.command()
def prove(
    round_dir: Round,
    since: Annotated[int, typer.Option("--from", help="The size of the state the witness signed last.", min=1)],
    out: Out,
    as_json: Json = False,
) -> None:
    """Write the proof that the newest signed state of a round's log continues an older one, without the log itself.

    Example: fairtrial witness prove rounds/latest --from 120 --out proof.txt
    """
    from controller.wiring.witnessing import write_proof

    checkpoint = write_proof(round_dir, since, out)
    text = f"{out}: the proof from {since} statements to those of {checkpoint}"
    render.result({"proof": str(out), "checkpoint": str(checkpoint)}, as_json=as_json, text=text)


@app.command()
def sign(
    checkpoint: Annotated[Path, typer.Argument(help="A round's checkpoints/<size>.txt.", show_default=False)],
    private: Key,
    name: Name,
    publisher: Annotated[Path, typer.Option("--publisher", help="The publisher's keys.json.", exists=True)],
    out: Out,
    log: Annotated[Path | None, typer.Option("--log", help="The statements.jsonl that the checkpoint is of.")] = None,
    proof: Annotated[Path | None, typer.Option("--proof", help="Instead: what `witness prove` wrote.")] = None,
    previous: Annotated[
        Path | None, typer.Option("--previous", help="The last one you signed, if this machine does not know it.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Cosign a checkpoint, if it continues the last one of this log that the key has signed.

    Example: fairtrial witness sign 240.txt --key w.pem --name example.org/w --publisher keys.json --out cosigned.txt
    """
    from controller.wiring.witnessing import sign_checkpoint

    size, last = sign_checkpoint(checkpoint, private, name, publisher, out, log=log, proof=proof, previous=previous)
    after = f"which continue the {last} signed before" if last else "the first state of this log that the key has seen"
    text = f"{out}: cosigned {size} statements, {after}"
    render.result({"cosigned": str(out), "size": size, "previous_size": last}, as_json=as_json, text=text)


@app.command()
def attach(
    round_dir: Round,
    cosigned: Annotated[Path, typer.Argument(help="What `witness sign` wrote.", show_default=False)],
    witness: Annotated[Path, typer.Option("--witness", help="The witness's line, in a file.", exists=True)],
    as_json: Json = False,
) -> None:
    """Keep a cosigned checkpoint with the round, to be published with its next version.

    Example: fairtrial witness attach rounds/latest cosigned.txt --witness witness.vkey
    """
    from controller.wiring.witnessing import attach_cosigned

    kept = attach_cosigned(settings(), round_dir, cosigned, witness)
    render.result({"kept": str(kept)}, as_json=as_json, text=f"kept: {kept}")
