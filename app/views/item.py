"""One item: the question, and both sides' answers beside each other, as plain text."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from app.frames import doc_fields
from app.loading import ItemOnBothSides
from app.looks import percent
from app.plain import literal, plain
from evals.evaluation import Evaluation
from evals.response import LogLikelihood
from storage.answers import Answer, AskedItem
from storage.pairing import Sides

LONGEST = 20_000
"""Characters of a text that are shown; `pawl show` prints all of it."""


def show_item(found: ItemOnBothSides, sides: Sides) -> None:
    """Show the item's question and target, then what each side answered."""
    st.subheader(f"Item of {literal(found.task)}", anchor=False)
    st.caption(f"Item {literal(found.item_id)}")
    asked = found.candidate or found.baseline
    if asked is None:
        st.info("Neither side has this item.")
        return
    question, target = st.columns([7, 3])
    with question:
        long, short = doc_fields(asked.item.doc)
        for name, text in long:
            _show_text(name, text)
        if short:
            st.caption(" · ".join(literal(f"{name} {text}") for name, text in short))
    with target:
        _show_text("target", asked.item.target)
    left, right = st.columns(2)
    with left:
        _show_side("Baseline", sides.baseline, found.baseline)
    with right:
        _show_side("Candidate", sides.candidate, found.candidate)


def _show_side(title: str, evaluation: Evaluation, asked: AskedItem | None) -> None:
    with st.container(border=True):
        st.markdown(f"**{title}** {literal(evaluation.checkpoint.name)}")
        if asked is None or not asked.answers:
            st.text("This side does not ask the item.")
            return
        for answer in asked.answers:
            _show_answer(answer, len(asked.answers), evaluation.evaluation_id)


def _show_answer(answer: Answer, count: int, evaluation_id: str) -> None:
    score, response = answer.score, answer.response
    facts = [f"answer {answer.repeat + 1} of {count}"] if count > 1 else []
    if score is None:
        facts.append("not scored")
    else:
        facts += [f"outcome {score.outcome.value}", f"score {percent(score.value)}"]
    if response is not None and response.log_likelihoods is None:
        facts += [
            f"finish reason {response.finish_reason.value}",
            f"{response.prompt_tokens} prompt tokens",
            f"{response.output_tokens} of {answer.max_tokens} answer tokens",
        ]
    st.caption(" · ".join(facts))
    if response is None:
        st.text("There is no response in the lake.")
    elif response.log_likelihoods is not None:
        _show_text("log-likelihoods of the choices", log_likelihood_lines(response.log_likelihoods))
    elif response.text is None:
        _show_text("error", response.error or "")
    else:
        _show_text("response", response.text, evaluation_id)
    if score is not None and score.answer is not None:
        _show_text("extracted answer", score.answer)
    if score is not None and score.detail is not None and score.detail != _error(answer):
        _show_text("scorer's note", score.detail)


def log_likelihood_lines(found: Sequence[LogLikelihood]) -> str:
    """Return the choices' log-likelihoods in nats, one a line, numbered from 0.

    >>> log_likelihood_lines([LogLikelihood(log_prob=-1.25, greedy=True)])
    '0: -1.2500, each token the most probable one'
    """
    return "\n".join(
        f"{number}: {one.log_prob:.4f}{', each token the most probable one' if one.greedy else ''}"
        for number, one in enumerate(found)
    )


def _error(answer: Answer) -> str | None:
    return answer.response.error if answer.response is not None else None


def _show_text(label: str, text: str, evaluation_id: str = "") -> None:
    """Show a label and, below it, the text character by character."""
    st.caption(literal(label))
    st.code(plain(text[:LONGEST]) or " ", language=None, wrap_lines=True)
    if len(text) > LONGEST:
        command = f"; pawl show {evaluation_id} prints all" if evaluation_id else ""
        st.caption(f"{len(text) - LONGEST} further characters are not shown{command}.")
