"""Shares, coins, invoices and taxes."""

from __future__ import annotations

from macaron.train.demi.tools import values
from macaron.train.demi.tools.slots import day, default, enum, flag, fraction, made, money, number, several, whole
from macaron.train.demi.tools.spec import Ask, Tool

_TICKER = made("Ticker symbol of the share.", values.ticker)
_CURRENCY = enum("Three-letter code of the currency.", "USD|EUR|GBP|JPY|CHF|SEK")

TOOLS = (
    Tool(
        "share_price_history",
        "Returns the closing prices of a share between two days.",
        {
            "symbol": _TICKER,
            "from_date": day("First day"),
            "to_date": day("Last day", end=True),
            "interval": default(enum("Distance of the prices.", "daily|weekly|monthly"), "daily"),
        },
        (
            "Show the prices of {symbol} from {from_date} to {to_date}[, {interval}].",
            "How did {symbol} do between {from_date} and {to_date}?[ A {interval} series is enough.]",
        ),
    ),
    Tool(
        "place_order",
        "Buys or sells shares.",
        {
            "side": enum("Direction.", "Buy=buy|Sell=sell"),
            "symbol": _TICKER,
            "quantity": whole("Number of shares.", 1, 900),
            "limit_price": number("Worst price that is accepted.", 5, 400, 2),
            "time_in_force": default(enum("How long it stays.", "day|gtc|ioc"), "day"),
        },
        (
            "{side} {quantity} shares of {symbol}[ at a limit of {limit_price}][, time in force {time_in_force}].",
            "{side} {quantity} {symbol}[, limit {limit_price}].",
        ),
        asks=(Ask("{side} some {symbol}.", "How many shares of {symbol}?"),),
    ),
    Tool(
        "withdraw_order",
        "Withdraws an order that has not been filled.",
        {"order_id": made("Identifier of the order.", values.uuid)},
        ("Withdraw order {order_id}.", "I changed my mind about {order_id}, take it off the market."),
    ),
    Tool(
        "watch_price",
        "Tells the user when a share passes a price.",
        {
            "symbol": _TICKER,
            "direction": enum("Direction.", "above|below"),
            "price": number("The price.", 5, 400, 2),
        },
        (
            "Alert me when {symbol} goes {direction} {price}.",
            "Let me know once {symbol} is {direction} {price} dollars.",
        ),
    ),
    Tool(
        "company_ratios",
        "Returns key figures of a listed company.",
        {
            "company": made("Name of the company.", values.company),
            "ratios": several("Which figures.", enum("", "pe_ratio|roe|debt_to_equity|gross_margin"), 1, 3),
            "year": whole("Business year.", 2015, 2025),
        },
        (
            "What are the {ratios} of {company}[ in {year}]?",
            "Look up {ratios} for {company}[, fiscal year {year}].",
        ),
    ),
    Tool(
        "exchange_rate_on",
        "Returns the rate of one currency in another on a day.",
        {
            "base": _CURRENCY,
            "quote": enum("Three-letter code of the other currency.", "CAD|INR|MXN|AUD|NOK|PLN"),
            "date": day("The day"),
        },
        ("What was the {base}/{quote} rate on {date}?", "How many {quote} did I get for one {base} on {date}?"),
    ),
    Tool(
        "price_bond",
        "Computes the price of a bond.",
        {
            "face_value": whole("Amount that is paid back.", 100, 10000, 100),
            "coupon_rate": fraction("Yearly interest of the bond"),
            "market_rate": fraction("Yearly interest on the market"),
            "years": whole("Years until it is paid back.", 1, 30),
        },
        (
            "Price a bond of {face_value}, coupon {coupon_rate}, {years} years left, market rate {market_rate}.",
            "What is a {years}-year bond worth? Face value {face_value}, coupon {coupon_rate}, yield {market_rate}.",
        ),
    ),
    Tool(
        "savings_after_years",
        "Computes what regular savings grow to.",
        {
            "monthly": money("Amount saved a month.", 20, 900),
            "rate": fraction("Yearly interest"),
            "years": whole("Duration in years.", 1, 40),
            "initial": default(money("Amount at the start.", 100, 9000), 0),
        },
        (
            "What do I have after {years} years if I save {monthly} a month at {rate}[ and start with {initial}]?",
            "Compute savings of {monthly} monthly, {rate} interest, {years} years[, {initial} at the start].",
        ),
    ),
    Tool(
        "sales_tax",
        "Computes the sales tax of a purchase in a city.",
        {
            "amount": money("Price before tax.", 5, 3000),
            "place": made("City and state, such as 'Salem, OR'.", values.town),
            "exempt": default(flag("The buyer pays no tax.", "for a tax-exempt buyer"), False),
        },
        (
            "How much sales tax is on {amount} in {place}[ {exempt}]?",
            "Tax for a {amount} purchase in {place}[ {exempt}].",
        ),
    ),
    Tool(
        "issue_invoice",
        "Writes an invoice and sends it.",
        {
            "customer": made("Name of the customer.", values.company),
            "amount": money("Amount in dollars.", 20, 5000),
            "due": day("When it must be paid"),
            "reference": made("Reference of the customer.", values.token),
        },
        (
            "Invoice {customer} {amount}[, due {due}][, reference {reference}].",
            "Send {customer} a bill of {amount}[ with reference {reference}].",
        ),
        asks=(Ask("Write an invoice for {customer}.", "What is the amount of the invoice?"),),
    ),
    Tool(
        "coin_price",
        "Returns the price of a cryptocurrency.",
        {"coin": enum("The coin.", "bitcoin|ethereum|litecoin|monero|solana"), "currency": default(_CURRENCY, "USD")},
        ("What does one {coin} cost[ in {currency}]?", "{coin} price[ in {currency}]", "现在{coin}多少钱?"),
    ),
)
