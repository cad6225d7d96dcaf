//! Texts of the house of BK12345: what each amenity is like, and the policies in full. They make the booking larger than
//! the threshold of an answer, as bookings of a property management system are.

/// Notes on the amenities of the house, in the order of the first amenities of a property.
pub(super) const AMENITY_NOTES: [&str; 30] = [
    "the network is called Beachhouse, its password stands on the card beside the door, and it reaches the terrace; \
     the router is in the hall closet and may be switched off and on again when it is slow; guests who need a fixed \
     line find a socket behind the desk, and a telephone has no signal in the cellar",
    "gas stove with four flames, pots for twelve, sharp knives in the block, and a basket with oil, salt, sugar, \
     tea and coffee for the first morning; please leave opened bags in the glass jars; the extractor hood has to \
     run while you fry, or the alarm in the hall sounds; the freezer is in the garage",
    "two cars fit one behind the other on the drive, a third one stands on the street before the chapel; campers do \
     not fit through the gate; there is a socket for electric cars at the left wall, 7 kW, with a meter that we \
     read when you leave",
    "in the room beside the garage, with detergent for three loads; the door opens two minutes after the end, not \
     before; the short program takes 40 minutes, wool goes by hand into the basin, and the line behind the house \
     dries sheets in two hours",
    "above the washing machine; empty the water tank after each load and clean the sieve, or it stops with a \
     blinking light",
    "one unit in each bedroom, set to 22 degrees; it turns itself off while a window is open, which is no fault; \
     filters are cleaned each month; in August the fans on the ceiling are enough on most nights",
    "floor heating downstairs, radiators upstairs; it takes three hours to get warm, so turn it on in the \
     afternoon; the thermostat in the hall rules the lower floor only, and the one on the landing the upper floor",
    "wood for two evenings is in the basket and more in the shed at 8 USD a basket; open the flap before you light \
     it, and never leave the room while it burns without the glass; the chimney is swept each October, and the \
     tongs, the brush and the glass cleaner hang beside it",
    "for four persons, ready after 40 minutes; towels are in the chest, and oils do not belong on the stones; after \
     40 minutes it turns itself off; the bucket is for water without soap, and the window stays a hand wide open",
    "38 degrees, on the lower terrace; shower before, put the cover back on at night, and call us instead of adding \
     chlorine yourself; there is room for six; its water is tested on Mondays and Fridays, when it is closed for \
     half an hour",
    "shared with the two neighboring houses, open from nine to nine, without a lifeguard; children swim only beside \
     an adult; the gate shuts by itself and is never propped open; the deep end is 2.10 m, and diving from the wall \
     is forbidden",
    "a rowing machine, weights up to 20 kg and two mats in the loft above the garage; the key hangs inside the hall \
     closet",
    "on the east side of the upper bedroom, with two chairs and the first sun; the railing is old, so nobody sits \
     on it",
    "40 square meters of wood toward the sea, with a table for eight, an awning that is rolled in above wind force \
     five, and lamps that turn themselves on at dusk; cushions belong into the box at night, since raccoons like \
     them, and the heater under the awning runs for an hour on a token from the hall",
    "fenced, with an apple tree whose apples are yours; the sprinklers start at six in the morning, and the gate to \
     the beach path closes with a hook against the wind; tomatoes and herbs in the raised beds may be picked; the \
     well is covered and its cover stays where it is",
    "charcoal, under the roof of the boathouse; ashes go into the iron bucket and not into the bin, and in dry \
     summers the fire department forbids it, which we tell you a day before; a gas grill stands beside it for days \
     with wind, with a full bottle and a spare one behind the shed",
    "from the kitchen, the terrace and both upper bedrooms; seals lie on the rocks at low tide, and binoculars hang \
     beside the window; whales pass from December to April, and the telescope in the loft may be carried down by \
     two persons",
    "from the loft on clear days, to the coastal range in the east; it is better after rain than in August",
    "place for twelve settings, tabs are under the sink; the short program takes 50 minutes and is enough for \
     everything but pans",
    "for beans and for ground coffee, with a steam nozzle; empty the tray each day, and descaling is our work, not \
     yours; beans from the roastery in the town are in the tin, 250 g for free and more at 12.00 USD",
    "800 watts, with a grill that is turned on by the lower knob; metal bowls stay outside",
    "60 cm wide, with a stone for pizza and a tray for bread; the timer beeps and does not turn it off",
    "50 inches in the living room, with an antenna for local channels and a cable for your computer in the drawer \
     below",
    "your own accounts work, and the television forgets them on the day you leave; rented films are charged to your \
     card and not to the house",
    "1.60 m wide before the north window, with a lamp, a chair that can be set higher, and sockets for three \
     devices; the connection is good enough for two video calls at the same time; a second screen, a keyboard and a \
     printer with paper for a week are in the cabinet, and the door of the room can be closed",
    "for children up to three years, with a mattress and two sheets; we set it up before you arrive when you write \
     to us a week ahead; a bath tub for babies, a changing mat and a monitor with two parts belong to it, and the \
     stairs have gates above and below",
    "two, with belts and a tray, in the closet of the small bedroom; the tray goes into the dishwasher",
    "about thirty in the chest under the stairs, most of them complete, for two to eight players; please write on \
     the lid when a piece is lost",
    "four shelves in six languages; take one that you have not finished with you and leave another one here",
    "four for adults and two for children, with helmets and a pump in the boathouse; lock them at the rail, and \
     tell us of a flat tire at once so that the next guests have one bicycle more; the path along the railway leads \
     to the aquarium in half an hour without a single crossing, and rain capes are in the basket",
];

/// The policies of the house in full: name and text.
pub(super) const POLICIES: [(&str, &str); 8] = [
    ("cancellation", "Free until 14 days before arrival, then half of the price"),
    (
        "checkIn",
        "From 15:00, with the code of the key box. The box hangs to the left of the front door behind the \
         lantern, and its code comes by message at noon of the day on which you arrive, after the deposit was \
         paid. Turn the handle to the right while you hold the bolt. If you arrive after 22:00, use the lamp \
         on the steps and close the gate by hand, since its motor wakes the neighbors. Earlier arrival is \
         possible from 12:00 if nobody left on the same day; ask us two days before, it costs nothing. Bags \
         can be left in the boathouse from 11:00 on in any case. All guests over 18 have to be registered \
         with their full names before arrival, which the county requires for its tax; the form is linked in \
         your confirmation, takes three minutes, and needs no passport. If the code does not work, call \
         Rafael, who lives five minutes away and comes at any hour. Do not call a locksmith: his bill is not \
         refunded. If the road along the coast is closed, as it is after storms, take the one through the \
         valley, which takes forty minutes more. After you have opened the door, press the green button of \
         the alarm within thirty seconds; if it sounds all the same, enter the last four digits of your \
         booking twice. The main tap of the water is under the stairs and is open when we expect you. In \
         winter we heat the house to 20 degrees by 15:00. The folder on the kitchen table has a plan of the \
         house, the telephone numbers of the doctor, the pharmacy and the sheriff, and the times of the tide, \
         which matter on the beach path: it is under water for an hour before and after high tide. Walk \
         through the rooms on the first evening and write to us what is broken or missing, so that nobody \
         asks you about it later. Two cars may stand on the drive while you unload. Groceries can be \
         delivered by the store in Cannery Row until 20:00 when you order by noon; we let the driver in if \
         you tell us his name.",
    ),
    (
        "checkOut",
        "Until 11:00. Leave the keys in the box and turn its wheels. Please put used towels into the bath \
         tub, start the dishwasher, take the garbage to the bins behind the garage (blue is paper, green is \
         glass, black is the rest), close all windows and set the heating to frost protection. Beds need not \
         be stripped. What is in the refrigerator may stay if it is closed and can be eaten by the next \
         guests. A later departure until 14:00 costs 60.00 USD and is possible if nobody arrives on the same \
         day; ask on the evening before. The cleaning takes four hours, so each hour that you stay longer \
         without asking is charged with 50.00 USD. Things that were left behind are kept for 30 days and sent \
         to you for the postage. Look under the beds and into the drying room, where most of them are found. \
         A short message when you leave helps us to send the cleaners earlier, and you get the deposit back \
         on the same day then. If you leave before 07:00, do it as quietly as you can, and put the keys into \
         the box the evening before if you do not need them any more. Sheets with stains go separately into \
         the basket, with a note, so that they can be treated before they are washed. Furniture that was \
         moved goes back to its place; the photographs in the folder show where. The bicycles are locked at \
         the rail, the kayak is upside down on its stand, and the cover is on the hot tub with both belts. \
         Please read the meter of the firewood and write it down. An airport shuttle stops at the chapel at \
         08:10, 10:40 and 13:25 and takes an hour and twenty minutes; it has to be booked a day before. If \
         your flight is late, the café at the harbor keeps bags for nothing when you have breakfast there.",
    ),
    (
        "smoking",
        "Not inside, which includes the loft, the garage, the balcony while its door is open, and electric \
         cigarettes. Outside there are ashtrays on the terrace and beside the boathouse; please empty them \
         into the iron bucket and not into the garden, since the grass is dry from June to October and the \
         fire of 2018 began with a cigarette. If a room smells of smoke after your stay, we have its curtains \
         and carpets cleaned and charge what the company charges us, usually 250.00 to 400.00 USD, with the \
         invoice. The smoke detectors are connected with the fire department: an alarm that was caused by \
         smoking costs 180.00 USD, and covering a detector ends the stay at once without a refund. Candles \
         are allowed on the terrace and in the glasses on the mantelpiece, and nowhere near the curtains. The \
         barbecue counts as fire, too. The same holds for guests who visit you during the day, and for \
         craftsmen that you may meet in the house. On the beach smoking is forbidden by the county between \
         the lifeguard towers, with a fine of 100.00 USD. Cannabis is legal in this state for adults and is \
         treated as tobacco here: outside, away from the doors, and never on the balcony above the neighbors. \
         Incense leaves the same smell in the curtains and is not burned inside. If you see embers outside \
         that are not ours, call 911 before you call us; the extinguishers are in the kitchen, beside the \
         fireplace and in the boathouse, and the garden hose reaches all sides of the house. The meeting \
         point for all guests is the chapel across the street.",
    ),
    (
        "pets",
        "One dog, after asking. Tell us its breed, weight and age, and whether it is used to staying alone; \
         we answer within a day. A dog stays downstairs, on its own blanket or the one from the chest, and \
         not on sofas and beds. It is never left alone in the house for more than two hours, because it barks \
         at the gulls and the neighbors call us. On the beach dogs run free from October to April and are on \
         a leash from May to September; the fine of the county is 120.00 USD. Bags are in the box at the \
         gate, and the garden is looked over before you leave. There is a veterinarian in the next town, \
         twelve minutes by car, whose number is on the refrigerator. Ticks are common from April to July, so \
         look through the fur in the evening. Cats, birds, reptiles and more than one dog are not possible, \
         because a member of the owner's family is allergic and uses the house in winter. Assistance dogs are \
         welcome without asking. A second towel hangs in the garage for wet dogs, and there is a shower with \
         warm water on the outer wall beside it. Bowls for food and water are under the sink; please bring \
         your own food, as the store in the town has only one kind. Owls and foxes live in the dunes, so dogs \
         are on a leash after dark. In the woods behind the house there is poison oak, which dogs carry home \
         on their fur without any harm to themselves: wash your hands. The fee for a dog is included, and we \
         charge nothing for hair that a vacuum cleaner removes. Scratches on doors are 150.00 USD a door, \
         because the whole leaf has to be painted. If your dog falls ill and you have to leave early, we give \
         back the nights that we can rent again.",
    ),
    (
        "parties",
        "None. The house is rented for the guests of the booking, at most eight persons at night and twelve \
         during the day. A birthday dinner or a wedding anniversary with family is no party as long as it \
         ends outside at 22:00 and no music is played outdoors; ask us when you are not sure, we mostly say \
         yes. Tents, campers and mattresses in the living room do not raise the number of persons. Catering \
         is possible from the two companies that know the kitchen, whose menus are in the folder in the hall. \
         Photographs for advertisements and films with a crew need a contract of its own. If the neighbors \
         call the sheriff, the stay can end on the same night without a refund, and the county charges 500.00 \
         USD for the second visit. We say this because it happened twice in eleven years, and because the \
         permit of the house depends on it. Fireworks are forbidden on the whole coast, also on the Fourth of \
         July and on New Year's Eve; the town has one at the harbor, which is seen well from the terrace. \
         Children's birthdays are welcome in the garden until 19:00, with balloons at the fence but without \
         confetti, which we still find years later. Weddings are possible on two weekends in May and \
         September with a separate contract, an insurance, and at most forty guests who sleep elsewhere. A \
         projector and a screen for the evening of your family can be borrowed from us. Drones are not flown \
         above the house or the beach from March to August, since plovers breed there. Please tell us \
         honestly how many of you come: an additional guest costs 25.00 USD a night when you say so before, \
         and 75.00 USD when we find out. Rented sound systems, karaoke machines and drum sets stay at home, \
         however small they are.",
    ),
    (
        "quietHours",
        "22:00 to 07:00. In these hours nobody is heard outside: talk on the terrace as in a restaurant, \
         carry chairs instead of pulling them, and close the doors of cars once. The hot tub may be used \
         until 23:00 without its bubbles, and the sauna until 22:00. The washing machine stands on the wall \
         of the neighbors, so it runs between 08:00 and 20:00 only. On Sundays and holidays the county asks \
         for quiet between 12:00 and 14:00 too, which concerns machines and balls against the garage door \
         more than children who laugh. The neighbors on the left are an old couple who sleep with an open \
         window, and those on the right have a baby; both are friendly, and both call us before they call \
         anyone else. There is a meter for loudness on the terrace, which stores no sound and no words, only \
         decibels, and sends us a message above 70. We then write to you, and that is usually the end of it. \
         Guests who come home late use the side entrance, whose lamp has no sensor, and leave their shoes in \
         the hall. Babies may cry at any time and nobody minds. If something keeps you awake, such as the fog \
         horn, which sounds twice a minute on perhaps ten nights a year, there are earplugs in the drawer of \
         each nightstand, and the room toward the garden is the quietest. Building work on neighboring lots \
         is allowed from 08:00 to 18:00 on weekdays; we write to you when we know of any and lower the price \
         by a tenth for each such day. Leaf blowers are forbidden in the whole district, and our gardener \
         comes on Tuesdays at 09:30 with a rake. The garbage truck comes on Thursdays at 06:45 and is the \
         only loud thing that we cannot change.",
    ),
    (
        "damageDeposit",
        "300.00 USD, given back within 7 days. It is reserved on your card two days before arrival and not \
         taken, so it appears as pending with your bank. What breaks in use is ours: glasses, plates, a lamp, \
         the handle of a pan. Tell us anyway, so that the next guests find what they need. What is charged is \
         what was misused or hidden: a stained mattress without a note, a lost key (45.00 USD with the new \
         cylinder), a missing bicycle (220.00 USD), garbage in the garden, and cleaning of more than four \
         hours at 35.00 USD an hour. We send photographs and the receipt before we charge anything, and you \
         have three days to object; then the platform decides and not we. The damage waiver of 25.00 USD in \
         your price covers up to 1,500.00 USD of accidental damage and needs a message from you before you \
         leave. It does not cover pets, smoking and lost keys. Nothing was charged for nine of ten stays of \
         the last year. If your card is declined, the platform asks for another one and keeps the booking for \
         24 hours. Bank transfers and checks are not possible, and neither is cash. Guests from abroad should \
         tell their bank of the reservation, since many banks refuse it as unusual. In a stay of more than 28 \
         nights the deposit is renewed every four weeks. The inventory with photographs is in the folder, was \
         last checked in August, and lists 412 objects from the teaspoons to the kayak; what is not in it \
         cannot be charged. Insurance of your own for travel or liability mostly covers such damage, and we \
         fill in its form when you send it to us. If we disagree, a mediator of the county looks at the \
         matter for nothing, and both sides accept what she says up to 1,000.00 USD.",
    ),
];
