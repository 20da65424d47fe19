"""Accounts, cards and payments."""

from __future__ import annotations

from macaron.train.demi.tools.bank.pools import PEOPLE
from macaron.train.demi.tools.slots import code, day, enum, flag, money, number, text, whole
from macaron.train.demi.tools.spec import Ask, Done, Tool

_ACCOUNT = enum("account", "checking|savings|joint|business")

TOOLS = (
    Tool(
        "get_balance",
        "Get the balance of one of the user's accounts.",
        {"account": _ACCOUNT},
        (
            "What's the balance of my {account} account?",
            "How much money is in my {account} account right now?",
            "Check my {account} balance please.",
        ),
        asks=(Ask("What's my balance?", "Which account do you mean: checking, savings, joint or business?"),),
        done=Done({"balance": number("", 20, 9000, 2)}, "Your {account} account holds ${balance}."),
    ),
    Tool(
        "transfer_money",
        "Send money to a person.",
        {
            "recipient": text("full name of who is paid", PEOPLE),
            "amount": money("amount in dollars", 5, 900),
            "from_account": _ACCOUNT,
            "note": text("text the recipient sees", "rent|dinner|concert tickets|birthday gift|groceries|train fare"),
        },
        (
            "Send {amount} to {recipient}[ from my {from_account} account][ with the note '{note}'].",
            "Please transfer {amount}[ from {from_account}] to {recipient}.",
            "I owe {recipient} {amount}, can you pay it[ with '{note}' as the note]?",
        ),
        asks=(
            Ask("Send some money to {recipient}.", "How much should I send to {recipient}?"),
            Ask("Please transfer {amount} for me.", "Who should receive the {amount}?"),
        ),
        done=Done(
            {"transfer_id": code("", "TR-", 5)}, "I sent {amount} to {recipient}; the transfer is {transfer_id}."
        ),
    ),
    Tool(
        "list_transactions",
        "List the transactions of an account between two dates.",
        {
            "account": _ACCOUNT,
            "start_date": day("first day"),
            "end_date": day("last day", end=True),
            "limit": whole("most", 5, 50, 5),
        },
        (
            "Show me what went through my {account} account from {start_date} to {end_date}.",
            "List [up to {limit} ]transactions on {account} between {start_date} and {end_date}.",
        ),
    ),
    Tool(
        "freeze_card",
        "Block a bank card that was lost or stolen.",
        {"last_four": code("last four digits of the card", "", 4), "reason": enum("why", "lost|stolen|damaged")},
        (
            "My card ending in {last_four} was {reason}, block it.",
            "Freeze the {reason} card ending {last_four} right away.",
        ),
        asks=(Ask("I lost my card, please block it!", "What are the last four digits of the card?"),),
        done=Done({"status": enum("", "frozen")}, "The card ending in {last_four} is {status}."),
    ),
    Tool(
        "set_card_limit",
        "Change the daily spending limit of a card.",
        {
            "last_four": code("last four digits of the card", "", 4),
            "daily_limit": whole("dollars a day", 100, 3000, 50),
        },
        (
            "Set the daily limit of my card ending in {last_four} to {daily_limit} dollars.",
            "I want to spend at most ${daily_limit} a day with card {last_four}.",
        ),
    ),
    Tool(
        "pay_bill",
        "Pay a bill to a company.",
        {
            "payee": text(
                "company", "City Water|Northwind Energy|Blue Cable|Metro Gas|Harbor Insurance|Oakwood Rentals"
            ),
            "amount": money("amount in dollars", 20, 400),
            "date": day("when to pay"),
        },
        (
            "Pay {amount} to {payee}[ on {date}].",
            "My {payee} bill is {amount}, please pay it[ on {date}].",
            "Could you settle the {amount} bill from {payee}?",
        ),
        asks=(Ask("Pay my {payee} bill.", "What is the amount of the {payee} bill?"),),
        done=Done(
            {"confirmation": code("", "P", 6)}, "Your {payee} bill of {amount} is paid, confirmation {confirmation}."
        ),
    ),
    Tool(
        "convert_currency",
        "Convert an amount from one currency to another.",
        {
            "amount": whole("amount to convert", 10, 5000, 5),
            "from_currency": enum("ISO code", "US dollars=USD|euros=EUR|yen=JPY|pounds=GBP|USD|EUR|Swiss francs=CHF"),
            "to_currency": enum("ISO code", "Canadian dollars=CAD|rupees=INR|pesos=MXN|CAD|MXN|Swedish kronor=SEK"),
        },
        (
            "Convert {amount} {from_currency} to {to_currency}.",
            "How much is {amount} {from_currency} in {to_currency}?",
            "I have {amount} {from_currency}; what do I get in {to_currency}?",
        ),
        done=Done({"converted": number("", 10, 9000, 2)}, "{amount} {from_currency} are {converted} {to_currency}."),
    ),
    Tool(
        "loan_payment",
        "Compute the monthly payment of a loan.",
        {
            "principal": whole("dollars borrowed", 5000, 400000, 1000),
            "annual_rate": number("yearly interest in percent", 1.5, 9.5, 2),
            "years": whole("length of the loan", 2, 30),
        },
        (
            "What would I pay each month on a ${principal} loan at {annual_rate}% over {years} years?",
            "Compute the monthly payment for {principal} dollars, {years} years, {annual_rate} percent interest.",
        ),
        asks=(
            Ask(
                "What's the monthly payment on a ${principal} loan?",
                "What are the interest rate and the number of years?",
            ),
        ),
    ),
    Tool(
        "create_savings_goal",
        "Start a savings goal.",
        {
            "name": text("what it is for", "new laptop|summer trip|emergency fund|wedding|used car|piano lessons"),
            "target": whole("dollars to reach", 500, 9000, 100),
            "deadline": day("when it should be reached"),
            "auto_save": flag("move money every month", "and save automatically every month"),
        },
        (
            "Start a savings goal called '{name}' of {target} dollars[ by {deadline}][ {auto_save}].",
            "I want to put aside ${target} for a goal named {name}[, due {deadline}].",
        ),
    ),
    Tool(
        "get_stock_quote",
        "Get the current price of a share.",
        {
            "symbol": text("ticker symbol", "AAPL|MSFT|NVDA|SAP|TSLA|SHEL|SONY|AMZN"),
            "currency": enum("shown in", "USD|EUR|GBP"),
        },
        (
            "What is {symbol} trading at[ in {currency}]?",
            "Give me the latest price of {symbol}[ in {currency}].",
        ),
        done=Done({"price": number("", 30, 700, 2)}, "{symbol} trades at {price}."),
    ),
)
