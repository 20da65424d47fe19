"""Shopping, orders and returns."""

from __future__ import annotations

from macaron.train.demi.tools.bank.pools import CITIES, PRODUCTS, STREETS
from macaron.train.demi.tools.slots import code, enum, flag, money, record, several, text, whole
from macaron.train.demi.tools.spec import Ask, Done, Tool

_ORDER = code("order number", "ORD-", 5)
_PRODUCT = text("product", PRODUCTS)

TOOLS = (
    Tool(
        "get_order_status",
        "Look up where an order is.",
        {"order_id": _ORDER},
        ("Where is my order {order_id}?", "Has {order_id} shipped yet?", "Can you check on order {order_id} for me?"),
        asks=(Ask("Where is my order?", "What is the order number?"),),
        done=Done(
            {"status": enum("", "shipped|packed|out for delivery|delivered"), "days_left": whole("", 1, 6)},
            "Order {order_id} is {status}; days left: {days_left}.",
        ),
    ),
    Tool(
        "cancel_order",
        "Cancel an order that has not been shipped.",
        {"order_id": _ORDER, "reason": enum("why", "no longer needed|ordered by mistake|found cheaper|too slow")},
        ("Cancel order {order_id}[, reason: {reason}].", "I want to cancel {order_id}[ because: {reason}]."),
        asks=(Ask("Please cancel my order.", "Which order number should I cancel?"),),
        done=Done({"status": enum("", "cancelled")}, "Order {order_id} is {status}."),
    ),
    Tool(
        "return_item",
        "Start the return of an item of an order.",
        {
            "order_id": _ORDER,
            "item": _PRODUCT,
            "refund_to": enum("where the money goes", "credit card=credit_card|gift card=gift_card|PayPal=paypal"),
        },
        (
            "I'd like to return the {item} from {order_id} and get the money on my {refund_to}.",
            "Return the {item} (order {order_id}), refund to {refund_to} please.",
        ),
        asks=(Ask("I want to return the {item}.", "Which order is it from, and where should the refund go?"),),
    ),
    Tool(
        "exchange_item",
        "Exchange an item of a delivered order for another size.",
        {"order_id": _ORDER, "item": _PRODUCT, "new_size": enum("size", "S|M|L|XL")},
        (
            "Swap the {item} in {order_id} for size {new_size}.",
            "The {item} from order {order_id} doesn't fit, I need size {new_size}.",
        ),
    ),
    Tool(
        "search_products",
        "Search the shop.",
        {
            "query": _PRODUCT,
            "max_price": whole("dollars at most", 15, 200, 5),
            "color": enum("colour", "black|white|green|red|grey"),
            "in_stock": flag("only what can ship now", "that is in stock"),
        },
        (
            "Find me a [{color} ]{query}[ under {max_price} dollars][ {in_stock}].",
            "I'm looking for a {query}[ in {color}][ for at most ${max_price}].",
            "Do you have a {query}[ {in_stock}]?",
        ),
    ),
    Tool(
        "add_to_cart",
        "Put a product into the cart.",
        {"product": _PRODUCT, "quantity": whole("how many", 2, 9)},
        ("Add {quantity} of the {product} to my cart.", "Put {quantity} x {product} in the basket."),
        done=Done(
            {"items_in_cart": whole("", 2, 14)},
            "I added {quantity} of the {product}; the cart now has {items_in_cart} items.",
        ),
    ),
    Tool(
        "change_address",
        "Change the delivery address of an order.",
        {
            "order_id": _ORDER,
            "address": record(
                "new address",
                {"street": text("street and number", STREETS), "city": text("city", CITIES)},
                "{street}, {city}",
            ),
        },
        ("Send {order_id} to {address} instead.", "Change the address of order {order_id} to {address}."),
        asks=(Ask("Change the delivery address of {order_id}.", "What is the new street and city?"),),
    ),
    Tool(
        "apply_coupon",
        "Apply a coupon to the cart.",
        {"coupon": text("coupon code", "SPRING20|WELCOME10|FREESHIP|VIP15|SUMMER5")},
        ("Use the coupon {coupon}.", "Apply code {coupon} to my cart.", "I have a coupon: {coupon}."),
    ),
    Tool(
        "write_review",
        "Post a review of a product.",
        {
            "product": _PRODUCT,
            "stars": whole("1 to 5", 1, 5),
            "comment": text("text", "great quality|arrived late|too small|works perfectly|not worth it"),
        },
        (
            "Leave a {stars}-star review for the {product}[ saying '{comment}'].",
            "Rate my {product} {stars} stars[ and write '{comment}'].",
        ),
    ),
    Tool(
        "compare_prices",
        "Compare the prices of a product in several shops.",
        {
            "product": _PRODUCT,
            "shops": several("shop names", text("", "Brightmart|Homeline|QuickBuy|Northgoods|Plaza")),
        },
        ("Compare the price of a {product} at {shops}.", "Which of {shops} sells the {product} cheapest?"),
    ),
    Tool(
        "set_price_alert",
        "Tell the user when a product gets cheaper.",
        {"product": _PRODUCT, "below": money("dollars", 10, 150)},
        ("Tell me when the {product} drops below {below}.", "Set a price alert for the {product} at {below}."),
    ),
)
