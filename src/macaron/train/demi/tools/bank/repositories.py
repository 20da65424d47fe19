"""Code hosting: repositories, issues, pull requests and builds."""

from __future__ import annotations

from macaron.train.demi.tools import values
from macaron.train.demi.tools.slots import default, enum, flag, made, record, several, switch, text, whole
from macaron.train.demi.tools.spec import Ask, Tool

_REPO = made("Repository as owner/name.", values.repository)
_BRANCH = made("Name of the branch.", values.branch)
_LABELS = several("Labels to put on it.", enum("", "bug|docs|urgent|question|regression"), 1, 3)

TOOLS = (
    Tool(
        "open_issue",
        "Opens an issue in a repository.",
        {
            "repo": _REPO,
            "title": text(
                "Title of the issue.",
                "Crash on empty input|Login times out|Wrong total in the cart|Typo on the start page|Export is slow|"
                "Dark mode ignores links|Search finds nothing|Upload stops at 99%",
            ),
            "labels": _LABELS,
            "assignee": made("Who works on it.", values.given_name),
        },
        (
            "Open an issue in {repo}: '{title}'[, labels {labels}][, assign {assignee}].",
            'File a bug called "{title}" against {repo}[ and give it to {assignee}].',
        ),
        asks=(Ask("Open an issue in {repo}.", "What should the title of the issue be?"),),
    ),
    Tool(
        "close_issue",
        "Closes an issue of a repository.",
        {
            "repo": _REPO,
            "number": whole("Number of the issue.", 1, 9000),
            "reason": default(enum("Why it is closed.", "completed|duplicate|wontfix"), "completed"),
        },
        ("Close issue {number} in {repo}[ as {reason}].", "{repo} #{number} is done, close it[ ({reason})]."),
        asks=(Ask("Close the issue in {repo}.", "What is the number of the issue?"),),
    ),
    Tool(
        "list_issues",
        "Lists issues of a repository.",
        {
            "repo": _REPO,
            "state": default(enum("Which issues.", "open|closed|all"), "open"),
            "label": enum("Only issues with this label.", "bug|docs|urgent|question"),
            "per_page": default(whole("Issues on a page, at most 100.", 10, 100, 5), 30),
        },
        (
            "List the [{state} ]issues of {repo}[ labelled {label}][, {per_page} a page].",
            "Which issues does {repo} have[ with label {label}]?",
        ),
    ),
    Tool(
        "open_pull_request",
        "Asks to merge one branch into another.",
        {
            "repo": _REPO,
            "head": made("Branch with the changes.", values.branch),
            "base": text("Branch that receives them.", "main|develop|stable"),
            "draft": default(flag("Not ready for review.", "as a draft"), False),
        },
        (
            "Open a pull request in {repo} from {head} to {base}[ {draft}].",
            "Ask to merge {head} into {base} in {repo}[ {draft}].",
        ),
    ),
    Tool(
        "merge_pull_request",
        "Merges a pull request.",
        {
            "repo": _REPO,
            "number": whole("Number of the pull request.", 1, 9000),
            "method": default(enum("How it is merged.", "merge|squash|rebase"), "merge"),
        },
        (
            "Merge PR {number} of {repo}[ with {method}].",
            "Pull request {number} in {repo} looks good, merge it[ by {method}].",
        ),
    ),
    Tool(
        "create_branch",
        "Creates a branch from another one.",
        {"repo": _REPO, "branch": _BRANCH, "from_commit": made("Commit to start at.", values.commit)},
        (
            "Create the branch {branch} in {repo}[ at {from_commit}].",
            "Branch {branch} off in {repo}[, commit {from_commit}].",
        ),
    ),
    Tool(
        "read_file_at",
        "Returns a file of a repository at a branch or commit.",
        {
            "repo": _REPO,
            "path": text("Path in the repository.", "src/app.py|README.md|docs/setup.md|lib/index.ts|Makefile|go.mod"),
            "ref": made("Branch or commit.", values.commit),
        },
        ("Show {path} from {repo}[ at {ref}].", "What's in {path} of {repo}[ at commit {ref}]?"),
    ),
    Tool(
        "find_in_code",
        "Searches the code of a repository for a text.",
        {
            "repo": _REPO,
            "pattern": made("Text to look for.", values.variable),
            "file_type": enum("Only files of this type.", "py|ts|go|rs|md"),
            "ignore_case": default(switch("Case does not matter.", "ignoring case", "case sensitive"), False),
        },
        (
            "Find '{pattern}' in {repo}[, only {file_type} files][, {ignore_case}].",
            "Where is {pattern} used in {repo}[ ({file_type} files)]?",
        ),
    ),
    Tool(
        "trigger_build",
        "Starts the pipeline of a branch.",
        {
            "repo": _REPO,
            "branch": _BRANCH,
            "variables": record(
                "Variables of the run.",
                {
                    "target": enum("What is built.", "linux|macos|windows"),
                    "debug": switch("Debug.", "with debug", "no debug"),
                },
                "target {target}, {debug}",
            ),
        },
        (
            "Run the build of {branch} in {repo}[ ({variables})].",
            "Trigger CI for {repo}, branch {branch}[, {variables}].",
        ),
    ),
    Tool(
        "tag_release",
        "Publishes a release.",
        {
            "repo": _REPO,
            "tag": made("Version of the release.", values.version),
            "prerelease": default(flag("Not for everyone yet.", "as a prerelease"), False),
        },
        ("Release {tag} of {repo}[ {prerelease}].", "Tag {repo} with {tag}[ {prerelease}]."),
    ),
    Tool(
        "invite_collaborator",
        "Gives a person access to a repository.",
        {
            "repo": _REPO,
            "email": made("Address of the person.", values.email),
            "role": default(enum("What the person may do.", "read|write|admin"), "read"),
        },
        ("Invite {email} to {repo}[ with {role} access].", "Give {email} access to {repo}[, role {role}]."),
    ),
    Tool(
        "star_project",
        "Puts a repository on the user's list of favorites.",
        {"repo": _REPO},
        ("Star {repo}.", "Put {repo} on my favorites.", "收藏一下{repo}。"),
    ),
)
