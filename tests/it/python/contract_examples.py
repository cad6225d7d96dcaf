"""The usage examples of the context-protection contract that `/api/v1` implements, unchanged:
`client` is set by contract_client.py."""


async def fetch_all_listings():
    """Fetch all listings using pagination."""
    all_listings = []
    cursor = None

    while True:
        params = {"limit": 100}
        if cursor:
            params["cursor"] = cursor

        response = await client.get("/api/v1/listings", params=params)
        all_listings.extend(response["items"])

        if not response["meta"]["hasMore"]:
            break

        cursor = response["nextCursor"]

    return all_listings


async def get_booking_details(booking_id: str):
    """Get booking details, requesting full details if summarized."""
    response = await client.get(f"/api/v1/bookings/{booking_id}")

    # Check if response was summarized
    if response.get("meta", {}).get("kind") == "preview":
        # Request full details
        endpoint = response["meta"]["detailsAvailable"]["endpoint"]
        params = response["meta"]["detailsAvailable"]["parameters"]
        response = await client.get(endpoint, params=params)

    return response
